/* Components that lie in a space of traits: their columns are computed here, not stored. */

/** All numbers of a model: its weights, then the columns of all components, level by level. */
function allNumbers({ rank, variables, traits }, packed) {
  if (!traits) return packed;
  const sizes = variables.map(({ levels }) => levels.length);
  const nLevels = sumOf(sizes);
  let used = rank;
  const take = (count) => packed.subarray(used, (used += count));
  const numbers = new Float64Array((1 + nLevels) * rank);
  numbers.set(packed.subarray(0, rank));
  const factors = numbers.subarray(rank);
  const isStored = Array(rank).fill(true);
  for (const one of traits) {
    isStored.fill(false, one.begin, one.begin + one.points);
    new TraitModel(one, sizes, take).writeColumns((level, k, share) => {
      factors[level * rank + one.begin + k] = share;
    });
  }
  const stored = [...isStored.keys()].filter((c) => isStored[c]);
  for (let level = 0; level < nLevels; level++) {
    take(stored.length).forEach((share, k) => (factors[level * rank + stored[k]] = share));
  }
  return numbers;
}

/** Columns as a function of the point at which a component lies (docs/math.md, eqs. 72 and 73). */
class TraitModel {
  constructor({ points, traits, waves, scores }, sizes, take) {
    [this.nPoints, this.nTraits, this.nWaves, this.sizes] = [points, traits, waves, sizes];
    this.points = take(points * traits);
    this.directions = take(traits * waves);
    this.phases = take(waves);
    this.intercepts = take(sumOf(sizes));
    this.scores = scores.map((count, n) => take(sizes[n] * count));
    this.coefficients = scores.map((count) => take(count * (traits + waves)));
  }

  /** What the log-odds at a point are linear in: its coordinates, then waves. */
  features(k) {
    const { nTraits, nWaves, directions, phases } = this;
    const point = this.points.subarray(k * nTraits, (k + 1) * nTraits);
    const features = new Float64Array(nTraits + nWaves);
    features.set(point);
    for (let wave = 0; wave < nWaves; wave++) {
      let angle = phases[wave];
      for (let t = 0; t < nTraits; t++) angle += point[t] * directions[t * nWaves + wave];
      features[nTraits + wave] = Math.sqrt(2 / nWaves) * Math.cos(angle);
    }
    return features;
  }

  /** Call `write(level, point, share)` for every level of every variable at every point. */
  writeColumns(write) {
    for (let k = 0; k < this.nPoints; k++) {
      const features = this.features(k);
      let begin = 0;
      this.sizes.forEach((size, n) => {
        const column = this.column(n, begin, size, features);
        column.forEach((share, i) => write(begin + i, k, share));
        begin += size;
      });
    }
  }

  /** The probabilities of a variable's levels at a point. */
  column(n, begin, size, features) {
    const [scores, coefficients] = [this.scores[n], this.coefficients[n]];
    const logOdds = this.intercepts.slice(begin, begin + size);
    const nScores = scores.length / size;
    for (let r = 0; r < nScores; r++) {
      let tilt = 0;
      for (let f = 0, k = r * features.length; f < features.length; f++, k++)
        tilt += coefficients[k] * features[f];
      for (let i = 0; i < size; i++) logOdds[i] += scores[i * nScores + r] * tilt;
    }
    const top = logOdds.reduce((a, b) => Math.max(a, b));
    const shares = logOdds.map((log) => Math.exp(log - top));
    const total = sumOf(shares);
    return shares.map((share) => share / total);
  }
}

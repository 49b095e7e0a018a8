/* How sure: what replicates of the fit answer, and the interval that follows from it. */

/** What lies at a part of sorted numbers; as numpy's method "weibull". */
function quantile(sorted, part) {
  const last = sorted.length - 1;
  const place = clamped((sorted.length + 1) * part - 1, 0, last);
  const [before, after] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return before + (place % 1) * (after - before);
}

/** The interval of an answer from how far those of the replicates are from theirs.
 *
 * Which quantiles are its ends depends on how many are below zero (docs/math.md, eq. 70).
 */
function intervalFrom(estimate, deviations, parts) {
  const sorted = deviations.sort();
  const twiceBelow = sorted.reduce((sum, each) => sum + 1 - Math.sign(each), 0);
  const [low, high] = parts[twiceBelow].map((part) => estimate + quantile(sorted, part));
  return [Math.min(low, estimate), Math.max(high, estimate)];
}

/** The same model from other samples: the reference, which the rest differ from, and the rest. */
class Replicates {
  constructor(model, { count, rank, level, parts, unclear, how }, bytes) {
    [this.count, this.level, this.nUnclear, this.how] = [count, level, unclear, how];
    this.parts = parts;
    this.hasComponents = unclear < count; // those of an average are others
    const size = (1 + model.nLevels) * rank;
    const [low, high] = [1, 2].map((k) => new Float64Array(bytes.buffer, 8 * k * size, size));
    const places = new Uint16Array(bytes.buffer, 24 * size);
    this.models = [model.like(new Float64Array(bytes.buffer, 0, size), rank)];
    for (let k = 0; k < count; k++) {
      const own = places.subarray(k * size, (k + 1) * size);
      this.models.push(model.like(unpacked(own, low, high), rank));
    }
    this.concluded = new WeakMap();
  }

  /** Whether the evidence means the same to them: a component may be another one, or none. */
  canAnswer({ model, evidence }) {
    return this.hasComponents || !evidence.has(model.component.position);
  }

  /** What all of them say given the same evidence as a posterior of the model. */
  given(one) {
    if (!this.concluded.has(one)) {
      const all = this.models.map((model) => new Posterior(model, one.evidence));
      const [reference, ...replicates] = all;
      const nImpossible = all.filter(({ isPossible }) => !isPossible).length;
      this.concluded.set(one, { reference, replicates, nImpossible });
    }
    return this.concluded.get(one);
  }

  /** The interval of what a function answers of a posterior, or null if a replicate has none. */
  interval(one, answer, isProbability = true) {
    if (!one.isPossible || !this.canAnswer(one)) return null;
    const { reference, replicates, nImpossible } = this.given(one);
    if (nImpossible) return null;
    const around = answer(reference);
    const deviations = Float64Array.from(replicates, (each) => answer(each) - around);
    const ends = intervalFrom(answer(one), deviations, this.parts);
    return isProbability ? ends.map((end) => clamped(end, 0, 1)) : ends;
  }

  get levelText() {
    return `${Number((100 * this.level).toPrecision(3))} %`;
  }
}

/** The numbers of one replicate, from places on grids of their logarithms (packing.py). */
function unpacked(places, low, high) {
  const at = (place, k) => Math.exp(low[k] + ((place - 1) / 65534) * (high[k] - low[k]));
  return Float32Array.from(places, (place, k) => (place ? at(place, k) : 0));
}

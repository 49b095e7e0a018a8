/* The mathematics: a model on typed arrays, and what it says given evidence. */

const MOST_PRODUCTS = 5e5; // budget of a search for the most likely row
const COMPONENTS_TRIED = 50; // how many components' own best rows are tried first

/** A joint PMF: weights, and a row of P(level | component) for every level of every variable. */
class Model {
  constructor(description, numbers) {
    this.file = description.model;
    this.rank = description.rank;
    this.setNumbers(numbers);
    this.nLevels = 0;
    this.variables = description.variables.map((variable, position) => {
      const begin = this.nLevels;
      const size = variable.levels.length;
      this.nLevels += size;
      return { untyped: [], values: null, literals: null, ...variable, position, begin, size };
    });
    this.positionOf = new Map(this.variables.map(({ name, position }) => [name, position]));
    this.component = this.componentAsVariable(description.component);
  }

  /** The component is given like a variable; where a variable has its name it gets a longer one. */
  componentAsVariable(named) {
    const numbers = Array.from({ length: this.rank }, (_, c) => `${c}`);
    let name = "component";
    while (this.positionOf.has(name)) name = `the ${name}`;
    const position = this.variables.length;
    const own = { name, position, literals: numbers, values: null, size: this.rank };
    return { untyped: [], levels: numbers, ...named, ...own };
  }

  /** What stands at a position in evidence: a variable, or the component. */
  at(position) {
    return this.variables[position] ?? this.component;
  }

  setNumbers(numbers) {
    this.weights = numbers.subarray(0, this.rank);
    this.factors = numbers.subarray(this.rank);
  }

  /** Another model of the same variables. */
  like(numbers, rank) {
    const other = Object.assign(Object.create(Model.prototype), this, { rank });
    other.setNumbers(numbers);
    return other;
  }

  /** The position of a level in its variable, by its text. */
  codeOf(variable, text) {
    variable.codes ??= new Map(variable.levels.map((level, code) => [level, code]).reverse());
    return variable.codes.get(text);
  }
}

/** How far rows were from the model in each pair of variables: χ²/df, NaN where no row tells. */
class Residuals {
  constructor({ variables }, bytes) {
    this.count = variables.length;
    this.numbers = new Float32Array(bytes.buffer);
  }

  /** That of two variables; those of one with all that follow it stand side by side. */
  of({ position: a }, { position: b }) {
    const [first, second] = [Math.min(a, b), Math.max(a, b)];
    const begin = first * this.count - (first * (first + 1)) / 2;
    return this.numbers[begin + second - first - 1];
  }
}

/** The bytes in a base64 text. */
function bytesIn(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = text.charCodeAt(k);
  return bytes;
}

/** The model given evidence: a Map from a variable's position to the codes it may have. */
class Posterior {
  constructor(model, evidence) {
    this.model = model;
    this.evidence = new Map(evidence);
    this.totals = new Map();
    const logs = this.logWeights();
    const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
    this.isPossible = top > -Infinity;
    // relative to the largest, since the product over much evidence underflows
    this.weights = logs.map((log) => (this.isPossible ? Math.exp(log - top) : 0));
    const sum = this.weights.reduce((a, b) => a + b, 0);
    this.logProbability = evidence.size ? top + Math.log(sum) : 0;
    this.weights = this.weights.map((weight) => (this.isPossible ? weight / sum : 0));
    this.shares = []; // of each variable, once they are asked for
  }

  /** The log of each component's weight and of what it gives to the evidence. */
  logWeights() {
    const logs = Float64Array.from(this.model.weights, Math.log);
    for (const [position, codes] of this.evidence) {
      const total = this.totalOf(this.model.at(position), codes);
      for (let c = 0; c < logs.length; c++) logs[c] += Math.log(total[c]);
      this.totals.set(position, total);
    }
    return logs;
  }

  /** The probability of some levels given each component. */
  totalOf(variable, codes) {
    const { rank, factors, component } = this.model;
    const total = new Float64Array(rank);
    if (variable === component) {
      for (const code of codes) total[code] = 1;
      return total;
    }
    for (const code of codes) {
      const row = (variable.begin + code) * rank;
      for (let c = 0; c < rank; c++) total[c] += factors[row + c];
    }
    return total;
  }

  sharesOf({ position, begin, size }) {
    const { rank, factors } = this.model;
    const shares = new Float64Array(size);
    const weights = this.weightsOf(position);
    const codes = this.evidence.get(position) ?? Array(size).keys();
    for (const code of codes) {
      let share = 0;
      for (let c = 0, k = (begin + code) * rank; c < rank; c++, k++)
        share += weights[c] * factors[k];
      shares[code] = share;
    }
    return shares;
  }

  /** What to weigh a variable's factor by: for given ones, their possible levels sum to one. */
  weightsOf(position) {
    const total = this.totals.get(position);
    return total ? this.weights.map((w, c) => (w > 0 ? w / total[c] : 0)) : this.weights;
  }

  distribution(variable) {
    return (this.shares[variable.position] ??= this.sharesOf(variable));
  }

  mean(variable) {
    let sum = 0;
    this.distribution(variable).forEach((share, code) => (sum += share * variable.values[code]));
    return sum;
  }

  /** KL(this ‖ other) of one variable, in nats. */
  divergence(variable, other) {
    const before = other.distribution(variable);
    let sum = 0;
    this.distribution(variable).forEach((p, code) => {
      if (p > 0) sum += p * (Math.log(p) - Math.log(before[code]));
    });
    return Math.max(sum, 0);
  }

  mode(variable) {
    const shares = this.distribution(variable);
    let best = 0;
    for (let code = 1; code < shares.length; code++) if (shares[code] > shares[best]) best = code;
    return best;
  }

  /** The most likely row given the evidence, or the best one found if the budget runs out. */
  completion() {
    return new Completion(this).found();
  }

  /** How much two variables that are not given tell about each other, in nats. */
  mutualInformation(first, second) {
    const { rank, factors } = this.model;
    const [p, q] = [this.distribution(first), this.distribution(second)];
    const logQ = q.map(Math.log);
    const weighted = new Float64Array(rank);
    let sum = 0;
    for (let i = 0; i < first.size; i++) {
      const row = (first.begin + i) * rank;
      const logP = Math.log(p[i]);
      for (let c = 0; c < rank; c++) weighted[c] = this.weights[c] * factors[row + c];
      for (let j = 0, k = second.begin * rank; j < second.size; j++) {
        let joint = 0;
        for (let c = 0; c < rank; c++, k++) joint += weighted[c] * factors[k];
        if (joint > 0) sum += joint * (Math.log(joint) - logP - logQ[j]);
      }
    }
    return Math.max(sum, 0);
  }

  /** How much a variable tells about the component: no pair with it has more mutual information. */
  componentInformation(variable) {
    const { rank, factors } = this.model;
    let sum = 0;
    this.distribution(variable).forEach((share, code) => {
      const row = (variable.begin + code) * rank;
      for (let c = 0; c < rank; c++) {
        const joint = this.weights[c] * factors[row + c];
        if (joint > 0) sum += joint * (Math.log(factors[row + c]) - Math.log(share));
      }
    });
    return sum;
  }

  /** Rows of codes, drawn exactly; the same seed gives the same rows. */
  sample(count, seed) {
    const random = randomNumbers(seed);
    return Array.from({ length: count }, () => {
      const component = drawn(this.weights, random());
      return this.model.variables.map((variable) => this.drawnCode(variable, component, random()));
    });
  }

  drawnCode({ position, begin, size }, component, uniform) {
    const { rank, factors } = this.model;
    const codes = this.evidence.get(position) ?? [...Array(size).keys()];
    const shares = codes.map((code) => factors[(begin + code) * rank + component]);
    return codes[drawn(shares, uniform)];
  }
}

/**
 * A search for the most likely row, as `JointPMF.most_likely` in Python. Levels are chosen variable
 * by variable. Each component gives a partial row at most what it gives with its own most likely
 * levels for the rest; a branch ends where the sum of these bounds is not above the best row so
 * far. Numbers are relative to the best row of the best component, since products over many
 * variables underflow.
 */
class Completion {
  constructor(posterior) {
    this.posterior = posterior;
    this.choices = posterior.model.variables.map((variable) => this.choicesOf(variable));
    const logs = posterior.weights.map(Math.log);
    for (const { tops } of this.choices) tops.forEach((top, c) => (logs[c] += Math.log(top)));
    this.top = logs.reduce((a, b) => Math.max(a, b));
    this.most = logs.map((log) => Math.exp(log - this.top));
    this.best = -1;
    this.nTried = 0;
    this.nSteps = Math.ceil(MOST_PRODUCTS / logs.length);
  }

  /** The levels a variable may have, and what each gives to a component's bound. */
  choicesOf({ position, begin, size }) {
    const { model, evidence, totals } = this.posterior;
    const codes = evidence.get(position) ?? [...Array(size).keys()];
    const total = totals.get(position);
    const rows = codes.map((code) => {
      const row = (begin + code) * model.rank;
      const factor = model.factors.slice(row, row + model.rank);
      return total ? factor.map((p, c) => (total[c] > 0 ? p / total[c] : 0)) : factor;
    });
    const tops = rows.reduce((most, row) => most.map((p, c) => Math.max(p, row[c])));
    const parts = rows.map((row) => row.map((p, c) => (tops[c] > 0 ? p / tops[c] : 0)));
    return { codes, parts, tops };
  }

  found() {
    const { posterior, choices } = this;
    const modes = posterior.model.variables.map((variable, n) =>
      choices[n].codes.indexOf(posterior.mode(variable)),
    );
    const heaviest = [...this.most.keys()].sort((a, b) => this.most[b] - this.most[a]);
    const components = heaviest.slice(0, COMPONENTS_TRIED).filter((c) => this.most[c] > 0);
    const own = components.map((c) =>
      choices.map(({ parts }) => parts.findIndex((part) => part[c] === 1)),
    );
    for (const picked of [modes, ...own]) this.tryRow(picked);
    const isExact = this.search([], this.most);
    const codes = this.picked.map((k, n) => choices[n].codes[k]);
    return { codes, logProbability: this.top + Math.log(this.best), isExact, nTried: this.nTried };
  }

  tryRow(picked) {
    let parts = this.most;
    picked.forEach((k, n) => (parts = product(parts, this.choices[n].parts[k])));
    this.keep(picked, sumOf(parts));
  }

  keep(picked, score) {
    this.nTried += 1;
    if (score > this.best) [this.best, this.picked] = [score, [...picked]];
  }

  /** Go through all rows that begin with what was picked; false if there are too many. */
  search(picked, parts) {
    if (picked.length === this.choices.length) {
      this.keep(picked, sumOf(parts));
      return true;
    }
    const branches = this.choices[picked.length].parts.map((part, k) => {
      const longer = product(parts, part);
      return { k, longer, bound: sumOf(longer) };
    });
    this.nSteps -= branches.length;
    if (this.nSteps < 0) return false;
    branches.sort((a, b) => b.bound - a.bound);
    for (const { k, longer, bound } of branches) {
      if (bound <= this.best * (1 + 1e-12)) break; // nothing but rounding is above
      picked.push(k);
      const isDone = this.search(picked, longer);
      picked.pop();
      if (!isDone) return false;
    }
    return true;
  }
}

function product(a, b) {
  const made = new Float64Array(a.length);
  for (let c = 0; c < a.length; c++) made[c] = a[c] * b[c];
  return made;
}

function sumOf(numbers) {
  let sum = 0;
  for (let c = 0; c < numbers.length; c++) sum += numbers[c];
  return sum;
}

/** The place where a uniform number falls among shares; one of share zero is never drawn. */
function drawn(shares, uniform) {
  let rest = uniform * shares.reduce((a, b) => a + b, 0);
  let last = 0;
  for (let k = 0; k < shares.length; k++) {
    if (shares[k] <= 0) continue;
    last = k;
    if (rest < shares[k]) break;
    rest -= shares[k];
  }
  return last;
}

/** A generator of uniform numbers in [0, 1) from a seed: Mulberry32, 53 bits from two draws. */
function randomNumbers(seed) {
  let state = seed | 0;
  const bits = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  return () => ((bits() >>> 5) * 2 ** 26 + (bits() >>> 6)) / 2 ** 53;
}

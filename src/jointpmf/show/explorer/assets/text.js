/* Elements and texts. Names and levels become text nodes and attributes only, never markup. */

const TEXT_SEEN = 160; // characters of a name or a level
const IMPOSSIBLE = "The evidence has probability zero, so nothing follows from it.";

const SCALES = [0.1, 0.2, 0.3, 0.5, 0.75, 1]; // what a full bar can stand for

const byId = (id) => document.getElementById(id);
const clamped = (number, low, high) => Math.min(Math.max(number, low), high);
const scaleFor = (most) => SCALES.find((scale) => scale >= most) ?? 1; // so that it seldom changes
const nats = (number, digits = 3) => number.toFixed(digits);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Change a text only if it is another one: the browser lays out anew whatever is written. */
function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** A text as it is shown: not too long, and not without anything to see. */
function short(text, length = TEXT_SEEN) {
  if (!text.trim()) return `“${text.slice(0, length)}”`;
  if (text.length <= length) return text;
  const characters = Array.from(text.slice(0, 2 * length));
  return `${characters.slice(0, length - 1).join("")}…`;
}

/** A name or a level: isolated from the direction of what is around it, its full text on hover. */
function textElement(text, className = "cut") {
  return element("bdi", { class: className, title: text }, short(text));
}

function percent(share) {
  if (share === 0) return "0 %";
  if (share < 1e-5) return "<0.001 %";
  return `${share >= 0.001 ? (100 * share).toFixed(1) : Number((100 * share).toPrecision(2))} %`;
}

/** Between what two probabilities something is; an interval may end where no probability can. */
function rangeText(interval) {
  const [low, high] = interval.map((end) => 100 * clamped(end, 0, 1));
  const digits = high >= 0.1 ? 1 : 4;
  return high < 1e-3 ? "<0.001 %" : `${low.toFixed(digits)}–${high.toFixed(digits)} %`;
}

function points(difference) {
  const text = (100 * Math.abs(difference)).toFixed(1);
  return text === "0.0" ? text : (difference < 0 ? "−" : "+") + text;
}

/** A difference with its sign, in as many digits as the numbers it is between. */
function signed(difference) {
  const text = numberText(Math.abs(difference));
  return (difference < 0 ? "−" : "+") + (Math.abs(difference) < 0.0005 ? "0" : text.slice(0, 5));
}

/** A probability from its logarithm, which may be far below the smallest number there is. */
function probabilityText(log) {
  if (log === -Infinity) return "0";
  if (log > Math.log(1e-4)) return `${Number((100 * Math.exp(log)).toPrecision(4))} %`;
  const exponent = Math.floor(log / Math.LN10);
  const digits = Array.from(String(-exponent), (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return `${Math.exp(log - exponent * Math.LN10).toFixed(2)} × 10⁻${digits}`;
}

function numberText(number) {
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return number.toExponential(3);
  return size >= 1000 ? number.toFixed(0) : number.toPrecision(4);
}

function joined(items, last = " and ") {
  return items.length < 2 ? items.join("") : items.slice(0, -1).join(", ") + last + items.at(-1);
}

/** Evidence on one variable, in words. */
function levelsText(variable, codes) {
  const text = (code) => short(levelOf(variable, code), 40);
  const isWhole = codes.at(-1) - codes[0] === codes.length - 1;
  if (variable.values && codes.length > 2 && isWhole) return `${text(codes[0])} to ${text(codes.at(-1))}`;
  const rest = codes.length > 4 ? [`${codes.length - 3} more`] : [];
  return joined([...codes.slice(0, rest.length ? 3 : 4).map(text), ...rest], " or ");
}

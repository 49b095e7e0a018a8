/* Tables in boxes that scroll; only the lines in sight are in the document. */

const LINE = 26; // pixels, as in the style
const LINES_MARGIN = 8;

class LongTable {
  constructor(box) {
    this.box = box;
    box.addEventListener("scroll", () => this.drawLines(), { passive: true });
    new ResizeObserver(() => this.drawLines()).observe(box);
  }

  /** Draw columns of given widths under `head`; `line(k)` makes a line when it comes in sight. */
  draw(widths, head, count, line) {
    const { scrollTop } = this.box;
    [this.count, this.line, this.nHead, this.seen] = [count, line, head.length, null];
    this.body = element("tbody");
    const columns = widths.map((width) => sized("col", "width", width));
    const table = sized(
      "table",
      "width",
      widths.reduce((a, b) => a + b),
    );
    table.className = "rows";
    table.setAttribute("aria-rowcount", head.length + count);
    table.append(element("colgroup", {}, ...columns), element("thead", {}, ...head), this.body);
    this.box.replaceChildren(table);
    this.drawLines(scrollTop);
    this.box.scrollTop = scrollTop;
  }

  drawLines(scrollTop = this.box.scrollTop) {
    if (!this.body) return;
    const first = Math.min(Math.floor(scrollTop / LINE), this.count) - LINES_MARGIN;
    const begin = Math.max(0, first);
    const most = Math.ceil(innerHeight / LINE) + 2 * LINES_MARGIN;
    const end = Math.min(this.count, begin + most);
    if (this.seen === `${begin}:${end}`) return; // as when one scrolls sideways
    this.seen = `${begin}:${end}`;
    const lines = [];
    for (let k = begin; k < end; k++) {
      lines.push(this.line(k));
      lines.at(-1).setAttribute("aria-rowindex", this.nHead + k + 1);
    }
    const [above, below] = [begin, this.count - end].map((count) =>
      sized("tr", "height", count * LINE),
    );
    this.body.replaceChildren(above, ...lines, below);
  }
}

function sized(tag, side, pixels) {
  const made = element(tag);
  made.style[side] = `${pixels}px`;
  return made;
}

const headCell = (content, attributes = {}) =>
  element("th", { scope: "col", ...attributes }, content);
const lineHead = (content) => element("th", { scope: "row" }, content);
const numberCell = (text) => element("td", { class: "number" }, text);

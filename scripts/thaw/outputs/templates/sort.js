// Sorting: a click on a column's head (or Enter, or Space on it) orders the rows by that column, a second one the other
// way round, a third one as they were. Rows stay within their part of the table, so that baselines keep their place above
// the rule. A cell is compared by its data-value where it has one, else by its text; an empty cell goes last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const parts = [...table.tBodies].map((part) => [part, [...part.rows]]);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...[...head.childNodes].filter((node) => node.nodeName !== "SMALL"));
    head.prepend(button);
    const isText = column === 0 || head.classList.contains("text");
    const turns = isText ? [null, "ascending", "descending"] : [null, "descending", "ascending"];
    button.addEventListener("click", () => {
      const turn = turns[(turns.indexOf(head.getAttribute("aria-sort")) + 1) % turns.length];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (turn) head.setAttribute("aria-sort", turn);
      for (const [part, rows] of parts) {
        part.append(...(turn ? rows.toSorted((a, b) => order(key(a, column), key(b, column), turn === "ascending")) : rows));
      }
    });
  });
}

function key(row, column) {
  const cell = row.cells[column];
  const value = cell?.dataset.value ?? cell?.textContent.trim() ?? "";
  return value === "" || Number.isNaN(Number(value)) ? value : Number(value);
}

function order(a, b, ascending) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const less = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(b, "en", { numeric: true });
  return ascending ? less : -less;
}

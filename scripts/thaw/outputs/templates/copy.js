// Buttons that copy: the files of a table or figure, its command, and of a table without files what it shows now, as CSV,
// TeX or Markdown. Without a script files are one link away.
const copy = async (text, button) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const name = button.textContent;
  button.textContent = "copied";
  setTimeout(() => (button.textContent = name), 1200);
};
const copying = (name, text) => {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  button.addEventListener("click", () => copy(text(), button));
  return button;
};
const shownRows = (table) => {
  const text = (cell) => [...cell.childNodes].filter((node) => node.nodeName !== "DETAILS")
    .map((node) => node.textContent.replace(/[ \n\t\r]+/g, " ").trim()).filter(Boolean).join(" ");
  return [...table.rows].filter((row) => !row.closest("[hidden]")).map((row) => [...row.cells].filter((cell) => !cell.hidden).map(text));
};
const TEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$", "±": "$\\pm$", "×": "$\\times$",
  "→": "$\\to$", "†": "\\textdagger{}", "‡": "\\textdaggerdbl{}", "\u202f": "\\,", "\u2009": "\\,", "\u00a0": "~" };
const tex = (text) => text.replace(/[\\~^−±×→†‡\u202f\u2009\u00a0&%#_${}]/g, (sign) => TEX[sign] ?? `\\${sign}`);
const FORMATS = {
  CSV: (rows) => rows.map((row) => row.map((text) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",")),
  TeX: ([head, ...rows]) => {
    const line = (row) => `${row.map(tex).join(" & ")} \\\\`;
    return [`\\begin{tabular}{l${"r".repeat(head.length - 1)}}`, "\\toprule", line(head), "\\midrule", ...rows.map(line), "\\bottomrule", "\\end{tabular}"];
  },
  Markdown: ([head, ...rows]) => {
    const line = (row) => `| ${row.map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`;
    return [line(head), `|:--|${"--:|".repeat(head.length - 1)}`, ...rows.map(line)];
  },
};
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(document.getElementById(button.dataset.copy).content.textContent, button));
}
for (const code of document.querySelectorAll(".files code")) code.before(copying("copy command", () => code.textContent));
for (const table of document.querySelectorAll("table")) {
  if (table.closest("figure")?.nextElementSibling?.matches(".files")) continue;
  const buttons = Object.assign(document.createElement("div"), { className: "files" });
  buttons.append(...Object.entries(FORMATS).map(([name, lines]) => copying(`copy ${name}`, () => lines(shownRows(table)).join("\n") + "\n")));
  table.after(buttons);
}

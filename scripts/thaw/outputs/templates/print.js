// On paper nothing can be unfolded: everything is open while the page is printed, and as it was again afterwards. A link
// to something that is folded away opens it.
const folded = () => document.querySelectorAll("details:not([open])");
window.addEventListener("beforeprint", () => folded().forEach((part) => part.setAttribute("open", "print")));
window.addEventListener("afterprint", () =>
  document.querySelectorAll('details[open="print"]').forEach((part) => part.removeAttribute("open")));
window.addEventListener("hashchange", () => document.querySelector(location.hash)?.closest("details")?.setAttribute("open", ""));

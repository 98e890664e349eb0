// Where the focus goes when what has it is taken away or disabled by what it did. Without this
// it is nowhere, and people without a mouse begin at the top of the page.

const parts = 'section, article, form, dialog, main, [role=group], [role=dialog], [tabindex]';
const disabled = (e: Element) => e.matches(':disabled');

/** keepFocus looks after the focus of a document. */
export function keepFocus(doc: Document): void {
  let last: HTMLElement | null = null; // what had the focus, until the person leaves it themselves
  let around: HTMLElement[] = []; // what it was in, from inside out
  let stands: HTMLElement | null = null; // the part that has the focus while last is disabled
  const nowhere = () => doc.activeElement === null || doc.activeElement === doc.body;

  doc.addEventListener('focusin', (e) => {
    if (e.target === stands) return;
    last = e.target as HTMLElement;
    stands = null;
    around = [];
    for (let p = last.parentElement; p !== null && p !== doc.body; p = p.parentElement) around.push(p);
  });
  // A press on nothing leaves what had the focus, which is still there; nothing is put right then.
  doc.addEventListener('pointerdown', () => { last = stands = null; });

  const look = () => {
    if (last === null || !doc.hasFocus()) return;
    const gone = !last.isConnected;
    if (!gone && !disabled(last)) {
      if (nowhere() || (stands !== null && doc.activeElement === stands)) last.focus({ preventScroll: true });
      stands = null;
      return;
    }
    if (!nowhere() && doc.activeElement !== last) return;
    if (!gone && doc.querySelector('[data-loading]')) return; // it may be back as soon as the service has answered
    const part = around.find((p) => p.isConnected && p.matches(parts));
    if (part === undefined) return;
    if (!part.hasAttribute('tabindex')) part.tabIndex = -1;
    stands = part;
    part.focus({ preventScroll: true });
    if (gone) {
      last = part;
      stands = null;
      around = around.slice(around.indexOf(part) + 1);
    }
  };
  // After the frame, since what is disabled loses the focus then, and what a page focuses itself comes first.
  let due = false;
  new MutationObserver(() => {
    if (due || last === null) return;
    due = true;
    requestAnimationFrame(() => setTimeout(() => { due = false; look(); }));
  }).observe(doc.body, { childList: true, subtree: true, attributes: true, attributeFilter: ['disabled', 'data-loading'] });
}

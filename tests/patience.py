"""A hand that moved something looks when it is drawn, however slow the machine."""

from __future__ import annotations

import contextlib
import functools
import os
import weakref
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Error, Keyboard, Locator, Mouse, Page

# `ATTNLAB_SLOW=6 pytest tests/browser`: a processor of a sixth of the speed, frames 300 ms late. A
# test that passes only because a page was quick fails here.
SLOW = float(os.environ.get("ATTNLAB_SLOW", "1"))
LATE = """() => {
  const soon = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (call) => window.setTimeout(() => soon(call), 300);
  window.cancelAnimationFrame = (frame) => window.clearTimeout(frame);
}"""
# What a hand did is drawn when its next frame comes; reading before that reads what was.
DRAWN = """async () => {
  const waits = (el) => el.isConnected && el.alDrawn && !el.alDrawn();
  const every = [...document.querySelectorAll("[data-explorable], [data-derivation]")];
  const late = every.filter(waits).map((el) => [el, el.dataset.draws]);
  const limit = performance.now() + 30000;
  while (late.some(([el, draws]) => waits(el) && el.dataset.draws === draws)) {
    if (performance.now() > limit) throw new Error("an explorable was not drawn in 30 seconds");
    await new Promise((done) => setTimeout(done, 4));
  }
}"""

# What comes near the screen is built then, and moves what stands below it; so do formulas.
STANDS = """async (el) => {
  const pause = (time) => new Promise((done) => setTimeout(done, time));
  const near = ({ top, bottom }) => bottom > -700 && top < window.innerHeight + 700;
  const moving = ":is([data-explorable], [data-derivation]):not([data-ready])";
  const coming = () => [...document.querySelectorAll(moving)].some((other) =>
    near(other.getBoundingClientRect()));
  const place = () => JSON.stringify([el.getBoundingClientRect(), document.body.scrollHeight]);
  const limit = performance.now() + 30000;
  for (let [last, calm] = ["", 0]; calm < 4; calm = !coming() && last === place() ? calm + 1 : 0) {
    last = place();
    if (performance.now() > limit) throw new Error("what a hand aims at did not come to rest");
    await pause(25);
    await new Promise((done) => requestAnimationFrame(done));
  }
}"""


def drawn(page: Page) -> None:
    """Until what was asked of the explorables is seen."""
    try:
        page.evaluate(DRAWN)
    except Error as error:  # the click led to another page
        if "was not drawn" in str(error):
            raise


HANDS: weakref.WeakKeyDictionary[Keyboard | Mouse, Page] = weakref.WeakKeyDictionary()


def handed(page: Page) -> Page:
    """A page whose keys and mouse are known; on a slow machine, where one was asked for."""
    HANDS[page.keyboard] = HANDS[page.mouse] = page
    if SLOW > 1:
        page.add_init_script(f"({LATE})()")
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOW})
    return page


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """A hand that moved something looks when it is drawn, and aims at what stands still."""
    acts = {
        Locator: "click press check uncheck fill tap select_option dispatch_event",
        Keyboard: "press",
        Mouse: "up click",
    }
    kept = [(kind, one, getattr(kind, one)) for kind in acts for one in acts[kind].split()]

    def patient(act: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(act)
        def acted(self: object, *given: object, **how: object) -> object:
            found = act(self, *given, **how)
            page = self.page if isinstance(self, Locator) else HANDS.get(self)
            if page:
                drawn(page)
            return found

        return acted

    where = Locator.bounding_box

    def at_rest(self: Locator, **how: object) -> object:
        self.evaluate(STANDS)
        return where(self, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Locator, "bounding_box", at_rest)
        for kind, name, act in kept:
            patch.setattr(kind, name, patient(act))
        yield

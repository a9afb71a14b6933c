"""The pictures of docs/EXPLORER.md, from a real browser: `make explorer-screenshots` makes them again."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from explorer import pages
from explorer.browser import DESKTOP, PHONE, Browser, missing

FOLDER = ROOT / "docs" / "explorer"
__all__ = ["main", "missing"]  # the site's build takes them, too


def main(target: Path = FOLDER) -> None:
    target.mkdir(exist_ok=True)
    browser = Browser()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = {one: getattr(pages, one)(folder) for one in ("small", "compared")}
        made |= {one: pages.program(one, folder) for one in ("transformer", "physics", "nan")}
        try:
            shots(browser, made, target)
        finally:
            browser.close()


def shots(browser: Browser, made: dict[str, Path], target: Path) -> None:
    def shoot(page: str, file: str, *scripts: str, size: tuple[int, int] = DESKTOP, dark: bool = False) -> None:
        browser.look(size, dark)
        browser.open(made[page])
        for script in scripts:
            browser.js(script)
            browser.settle()
        browser.settle()
        browser.shot(target / file)
        print(f"{target.name}/{file}: {(target / file).stat().st_size // 1024} KiB")

    def at(share: float) -> str:
        return f"const v = explorer.active; v.timeline.go(v.player.length * {share})"

    click = "document.querySelector('{}').click()".format
    shoot("small", "run.png", at(0.42), click("#tab-run"))
    opened = """const view = explorer.active, number = view.groups.groups.findIndex(({label}) => label === "layers.8");
        view.groups.groups[number].open = true;
        return view.arrange(false, view.scene.firstGroup + number)
            .then(() => view.picture.centre(view.scene.firstGroup + number))"""
    line = "document.querySelectorAll('#panel-source li[data-line]')[2].click()"
    shoot("transformer", "transformer-dark.png", at(0.33), click("#tab-source"), line, opened, dark=True)
    shoot("nan", "nan.png", at(1), click("#tab-answers"), click("#answer-nan li button"))
    flat = """const groups = document.getElementById('grouping');
        groups.value = 'none'; groups.dispatchEvent(new Event('change'))"""
    rest = "return new Promise((done) => setTimeout(done, 900))"
    shoot("physics", "physics.png", at(0.6), click("#tab-answers"), flat, rest, size=(1000, 640))
    shoot("compared", "compared.png", at(0.5), click("#tab-run"))
    shoot("nan", "phone.png", at(0.75), size=PHONE)
    shoot("nan", "phone-dark.png", at(0.75), "document.querySelector('aside').scrollIntoView()",
          click("#tab-answers"), size=PHONE, dark=True)  # fmt: skip


if __name__ == "__main__":
    main()

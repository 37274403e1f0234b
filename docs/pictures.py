"""Make the pictures of the README: the page of a failing example, the comparison of the demo, the live view.

`python -m docs.pictures` trains, renders and photographs; it needs Chromium. The files go to docs/pictures/.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.generate import ROOT

PICTURES = ROOT / "docs/pictures"
EXAMPLE = ROOT / "examples/plain_list.py"
_ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def main() -> int:
    """Make all pictures anew."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("docs.pictures needs chromium (apt-get install chromium)", file=sys.stderr)
        return 2
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="whygrad-pictures-") as name:
        folder = Path(name)
        shutil.copy(EXAMPLE, folder)
        _whygrad(folder, "run", "--quiet", "-o", "failing", EXAMPLE.name)
        _whygrad(folder, "html", "failing", "-o", "page.html")
        _whygrad(folder, "demo")
        runs = sorted(folder.glob(".whygrad/demo-*"), key=lambda path: "Sigmoid" in path.name)
        _whygrad(folder, "compare", *map(str, runs), "--html", "compare.html", "--fail-on", "never")
        _photograph(browser, folder / "page.html", PICTURES / "page.png", 1100, 1000)
        _photograph(browser, folder / "compare.html", PICTURES / "compare.png", 1100, 760)
        picture = asyncio.run(_live(folder / "failing"))
        (PICTURES / "live.svg").write_text(picture, encoding="utf-8")
    return 0


def _whygrad(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "whygrad", *words]
    subprocess.run(command, cwd=folder, env=_ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)


def _photograph(browser: str, page: Path, picture: Path, width: int, height: int) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = chromium.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=picture)
        chromium.close()


async def _live(run: Path) -> str:
    from whygrad.live.app import LiveApp
    from whygrad.run import load

    app = LiveApp(lambda: load(run), str(run))
    async with app.run_test(size=(96, 24)) as pilot:
        while app.is_waiting:
            await pilot.pause(0.1)
        await pilot.pause(0.5)
        return app.export_screenshot(title="whygrad live")


if __name__ == "__main__":
    sys.exit(main())

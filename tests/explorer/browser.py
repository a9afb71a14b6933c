"""A real browser for the tests and the screenshots: Debian's Chromium without a window, by Selenium."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage",
)  # fmt: skip
DESKTOP, PHONE = (1280, 800), (390, 844)


def missing() -> str | None:
    """What a browser test needs and is not here."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (the extra `explorer-test`)"
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        return "chromium and chromium-driver are not installed"
    return None


class Browser:
    """One browser, and what tests do with it."""

    def __init__(self) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        self.profile = tempfile.mkdtemp(prefix="retrograd-browser-")
        self.downloads = Path(self.profile) / "downloads"
        self.downloads.mkdir()
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={self.profile}/profile"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(self.downloads)}
        )
        self.look(DESKTOP)

    def close(self) -> None:
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def look(self, size: tuple[int, int], dark: bool = False) -> None:
        """Have a window of this size, on a system with a dark or a light look."""
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def open(self, path: Path) -> None:
        """Open a page, and wait for its first picture."""
        self.driver.get(path.as_uri())
        self.wait("return document.body.dataset.ready === 'true'")

    def wait(self, script: str, *arguments: Any, seconds: float = 30) -> Any:
        """Run a script until it gives something true."""
        end = time.monotonic() + seconds
        while True:
            found = self.driver.execute_script(script, *arguments)
            if found:
                return found
            assert time.monotonic() < end, f"still not: {script} {self.errors()}"
            time.sleep(0.02)

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return self.js("return document.querySelector(arguments[0]).textContent", selector)

    def box(self, title: str) -> Any:
        """The element of a box in the picture, by its title."""
        script = """return [...document.querySelectorAll(".picture .box")]
            .find((box) => box.querySelector(".title").textContent === arguments[0])"""
        return self.wait(script, title)

    def press(self, keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(keys).perform()

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a select element."""
        self.js(
            "const one = document.querySelector(arguments[0]); one.value = arguments[1];"
            "one.dispatchEvent(new Event('change'))",
            selector,
            value,
        )

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 0))")
        self.wait("return [...document.querySelectorAll('.wait')].every((one) => one.hidden)")

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def shot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))

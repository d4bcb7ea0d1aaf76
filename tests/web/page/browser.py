# SPDX-License-Identifier: Apache-2.0
"""A browser for tests of the page: Chromium without a window, driven by Selenium.

    with Server('--root', MACHINE) as server, Browser(server) as page:
        page.go('#/machine')
        page.see('h2', 'GPU 0')

Where the browser, its driver or Selenium is missing, importing this ends the program with a skip that says which.
With CAIRN_WEB_DEV=src/web/assets the server takes the page's files from there instead of from inside the program.
"""
import json
import os
import shutil
import subprocess
import sys
import time


def skip(reason):
    print(f'1..0 # SKIP {reason}')
    sys.exit(0)


def find_selenium():
    """Debian's package is for Debian's Python, which need not be the first on the path."""
    try:
        import selenium  # noqa: F401
        return
    except ImportError:
        pass
    other = '/usr/bin/python3'
    known = os.path.exists(other) and os.path.realpath(other) != os.path.realpath(sys.executable)
    if known and subprocess.run([other, '-c', 'import selenium'], stderr=subprocess.DEVNULL).returncode == 0:
        os.execv(other, [other, *sys.argv])
    skip('no Selenium (Debian: python3-selenium); scripts/setup --test installs it')


def find_program(*names):
    for name in names:
        path = shutil.which(name) or shutil.which(name, path='/usr/bin:/usr/lib/chromium')
        if path:
            return path
    skip(f'no {names[0]}; scripts/setup --test installs it')
    return None


if os.environ.get('CAIRN_SANITIZE', 'none') != 'none':
    skip('a build with sanitizers is too slow for a browser; the other tests of suite web try its server')
find_selenium()
CHROMIUM = find_program('chromium', 'chromium-browser', 'google-chrome')
DRIVER = find_program('chromedriver', 'chromium.chromedriver')

from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import JavascriptException, StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.remote.remote_connection import RemoteConnection  # noqa: E402

import webserver  # noqa: E402

KEYS = Keys
MACHINE = webserver.MACHINE
WAIT_S = 90  # for conditions that a machine with much to do still reaches; a quiet one takes a fraction of a second


class Server(webserver.Server):
    """`cairn ui` whose state folder lives as long as the block; its jobs end with it."""

    def __init__(self, *arguments, **more):
        dev = os.environ.get('CAIRN_WEB_DEV')
        super().__init__(*arguments, *(['--dev', os.path.realpath(dev)] if dev else []), **more)

    def __exit__(self, *arguments):
        try:
            for job in json.loads(self.cairn('job', 'list', '--json').stdout or '{}').get('jobs', []):
                if job['alive']:
                    self.cairn('job', 'kill', job['uid'])
        finally:
            super().__exit__(*arguments)


class Browser:
    """One window.  Every message of the console and every report of the security policy is a finding: see trouble()."""

    def __init__(self, server, width=1440, height=900, dark=True):
        options = Options()
        options.binary_location = CHROMIUM
        for word in ('--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--disable-dev-shm-usage', '--force-device-scale-factor=1',
                     '--disable-background-networking', '--disable-component-update', '--no-first-run', '--lang=en-US'):
            options.add_argument(word)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.server = server
        RemoteConnection.set_timeout(180)  # a driver that hangs fails the test
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.set_page_load_timeout(120)
        self.driver.set_script_timeout(60)
        self.driver.execute_cdp_cmd('Emulation.setTimezoneOverride', {'timezoneId': 'UTC'})
        self.resize(width, height)
        self.theme(dark)

    def __enter__(self):
        try:
            self.driver.get(link_of(self.server))
            self.see('main h1')
        except BaseException:
            self.driver.quit()
            raise
        return self

    def __exit__(self, *_):
        self.driver.quit()

    # ---- the window ----

    def resize(self, width, height):
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 600})

    def theme(self, dark):
        features = [{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}, {'name': 'prefers-reduced-motion', 'value': 'reduce'}]
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': features})

    def go(self, address):
        """Follows a hash route, and waits until its page is there."""
        self.js('document.getElementById("main").dataset.left = "yes"; location.hash = arguments[0]', address)
        self.wait(lambda: self.js('return location.hash === arguments[0] && Boolean(document.querySelector("main h1, main .empty, main .notice"))', address), address)

    def settled(self):
        """Waits until the page has what it asked for, and the browser has laid it out."""
        self.wait(lambda: not self.js('return document.querySelector("main .loading")'), 'that nothing is loading any more')
        self.driver.execute_async_script('const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))')

    def reload(self):
        self.driver.refresh()
        self.see('main h1')

    def shot(self, path):
        self.driver.save_screenshot(path)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    # ---- looking ----

    def wait(self, condition, what, seconds=WAIT_S):
        end = time.monotonic() + seconds
        while True:
            try:
                value = condition()
            except (StaleElementReferenceException, JavascriptException):
                value = None
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f'not seen within {seconds} s: {what}; the page says: {self.text()[:600]!r}')
            time.sleep(0.05)

    def text(self, selector='body'):
        return self.js('const e = document.querySelector(arguments[0]); return e ? e.innerText : ""', selector)

    def all(self, selector):
        return [e for e in self.driver.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]

    def see(self, selector, text=None, seconds=WAIT_S):
        """The first shown element of that selector, with that text somewhere in it."""
        def look():
            return next((e for e in self.all(selector) if text is None or text in e.text), None)
        return self.wait(look, f'{selector} {text or ""}'.strip(), seconds)

    def gone(self, selector, text=None, seconds=WAIT_S):
        self.wait(lambda: not any(text is None or text in e.text for e in self.all(selector)), f'that {selector} {text or ""} is gone', seconds)

    # ---- hands ----

    def click(self, selector, text=None):
        def press():
            element = self.see(selector, text)
            self.js('arguments[0].scrollIntoView({ block: "center" })', element)
            element.click()
            return True
        self.wait(press, f'a click on {selector} {text or ""}')

    def type(self, selector, text):
        element = self.see(selector)
        element.clear()
        element.send_keys(text)

    def press(self, *keys, alt=False, shift=False, control=False):
        """Keys to whatever has the focus."""
        chain = ActionChains(self.driver)
        held = [key for key, on in ((Keys.ALT, alt), (Keys.SHIFT, shift), (Keys.CONTROL, control)) if on]
        for key in held:
            chain.key_down(key)
        for key in keys:
            chain.send_keys(key)
        for key in held:
            chain.key_up(key)
        chain.perform()

    def chain(self):
        return ActionChains(self.driver)

    def focused(self):
        return self.js('const e = document.activeElement; return e ? (e.getAttribute("aria-label") || e.innerText || e.id || e.tagName) : ""')

    # ---- what must never be ----

    def trouble(self, allowed=()):
        """Messages of the console since the last call; allowed: words of those that a test provokes."""
        lines = [f'{m["level"]} {m["message"]}' for m in self.driver.get_log('browser')]
        return [line for line in lines if not any(word in line for word in allowed)]

    def overflow(self):
        """How many pixels the page is wider than the window."""
        return self.js('return document.documentElement.scrollWidth - document.documentElement.clientWidth')


def link_of(server):
    """A one-time link that nobody has used."""
    done = server.cairn('ui', '--url', '--json')
    return json.loads(done.stdout)['link']

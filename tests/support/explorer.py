"""The explorer's page as tests use it."""

import time


class Explorer:
    """One page in the browser, which takes note of all that it asks for and complains of."""

    def __init__(self, context):
        self.page = context.new_page()
        self.page.set_default_timeout(20_000)
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, path, fragment, scheme):
        """Show a file; nothing is left of what was shown before."""
        self.path = path
        self.requests.clear()
        self.complaints.clear()
        self.page.emulate_media(color_scheme=scheme)
        return self.go(fragment)

    def close(self):
        """Check that the page was well-behaved, and forget what it keeps."""
        assert self.complaints == []
        assert {url.split("#")[0] for url in self.requests} <= {"about:blank", self.path.as_uri()}
        assert self.ask("window.hacked") is None
        self.ask("{ localStorage.clear(); sessionStorage.clear() }")

    def go(self, fragment=""):
        """Load the file, also where only the fragment is another."""
        if self.page.url.split("#")[0] == self.path.as_uri():
            self.page.goto("about:blank")
        self.page.goto(f"{self.path.as_uri()}#{fragment}")
        return self

    def edit(self, fragment):
        """Change the address, which the page reads as it does when it is loaded."""
        self.ask(
            "new Promise((read) => { addEventListener('hashchange', () => read(), { once: true });"
            " location.hash = a[0]; })",
            fragment,
        )

    def settle(self):
        """Wait until all is computed and drawn."""
        self.wait("document.querySelectorAll('main [aria-busy=true]').length === 0")
        self.ask(
            "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
        )

    def scroll(self, identifier, x, y):
        """Scroll an element, and wait until the lines that came in sight are drawn."""
        self.ask("void document.getElementById(a[0]).scrollTo(a[1], a[2])", identifier, x, y)
        self.settle()

    def ask(self, code, *arguments):
        return self.page.evaluate(f"(a) => {code}", list(arguments))

    def wait(self, code):
        """Wait until an expression is true; the page's policy forbids Playwright's own polling."""
        end = time.monotonic() + 20
        while not self.ask(code):
            assert time.monotonic() < end, code
            self.page.wait_for_timeout(20)

    def bar(self, name, level):
        position = self.ask("jointpmf.names.indexOf(a[0])", name)
        return self.page.locator(f'[data-position="{position}"] .level[data-code="{level}"]')

    def card(self, name):
        return self.page.locator(
            f'.card[data-position="{self.ask("jointpmf.names.indexOf(a[0])", name)}"]'
        )

    def text(self, identifier):
        return self.page.locator(f"#{identifier}").text_content()

    def fragment(self):
        return self.ask("location.hash.slice(1)")

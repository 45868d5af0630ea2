package io.deepep.bench.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The page in a real browser: a script that is added to it uses it as a person would, and writes
 * down what it saw. Skipped where there is no Chromium, unless {@code -Ddeepep.require} names
 * {@code browser}.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ReportPageBrowserTest {
    private static final List<String> NAMES =
            List.of("chromium", "chromium-browser", "google-chrome", "google-chrome-stable");
    private static final Pattern RESULT =
            Pattern.compile("<pre id=\"seen\">(.*?)</pre>", Pattern.DOTALL);

    /** Listens before anything else runs; images that do not load are errors too. */
    private static final String LISTENER =
            "<script>window.faults = [];"
                    + " addEventListener('error', e => faults.push(e.message || e.target.tagName), true);"
                    + " for (const kind of ['error', 'warn'])"
                    + " console[kind] = (...words) => faults.push(words.join(' '));</script>";

    private static final String VISITOR =
            """
            <script>
              addEventListener("load", () => {
                const table = document.querySelector(".more").nextElementSibling.querySelector("table");
                const heads = [...table.querySelectorAll("thead th")];
                const p50 = heads.findIndex(head => head.textContent === "p50");
                const shown = () => [...table.tBodies[0].rows].filter(row => row.offsetHeight > 0);
                const column = index => shown().map(row => row.children[index].textContent);
                const keys = index => shown().map(row => Number(row.children[index].dataset.key));
                const click = index => heads[index].querySelector("button").click();
                const seen = { title: document.title, sections: document.querySelectorAll("section").length };
                seen.images = [...document.querySelectorAll("figure svg")].map(svg => svg.getBoundingClientRect().width);
                seen.fetched = performance.getEntriesByType("resource").map(entry => entry.name)
                    .filter(name => !name.startsWith("data:"));
                seen.broken = [...document.querySelectorAll("nav a")].map(link => link.getAttribute("href"))
                    .filter(href => !document.querySelector(href));
                seen.overflow = document.documentElement.scrollWidth > innerWidth;
                seen.fastest = shown().length;
                const more = document.querySelector(".more");
                more.click();
                seen.all = shown().length;
                click(p50);
                seen.ascending = keys(p50);
                seen.units = column(p50);
                click(p50);
                seen.descending = keys(p50);
                seen.sort = heads[p50].getAttribute("aria-sort");
                click(0);
                seen.names = column(0);
                more.click();
                seen.again = shown().length;
                seen.faults = faults;
                // The page as it came, in a frame as wide as a small phone.
                const phone = document.createElement("iframe");
                phone.width = 360;
                phone.srcdoc = document.documentElement.outerHTML
                    .replace(new RegExp("<script[^]*?</" + "script>", "g"), "");
                phone.onload = () => {
                  const shown = phone.contentDocument;
                  seen.phoneWidth = shown.documentElement.scrollWidth;
                  seen.phoneRows = [...shown.querySelectorAll("tbody th")].filter(head => head.offsetHeight > 0).length;
                  seen.phoneLetters = parseFloat(phone.contentWindow.getComputedStyle(shown.querySelector("td")).fontSize);
                  const pre = document.createElement("pre");
                  pre.id = "seen";
                  pre.textContent = JSON.stringify(seen);
                  document.body.append(pre);
                };
                document.body.append(phone);
              });
            </script>
            """;

    @TempDir static Path folder;
    private static JsonNode seen;
    private static int numPlots;

    @BeforeAll
    static void visit() throws Exception {
        Optional<Path> browser = browser();
        String reason =
                "no browser: none of " + NAMES + " is on the PATH, and -Ddeepep.browser names none";
        if (List.of(System.getProperty("deepep.require", "").split(",", -1)).contains("browser")) {
            assertThat(browser).as(reason).isPresent();
        }
        Assumptions.assumeTrue(browser.isPresent(), reason);
        ReportFixture.record(folder);
        ReportFixture.report(folder);
        try (Stream<Path> files = Files.list(folder.resolve("report"))) {
            numPlots = (int) files.filter(file -> file.toString().endsWith(".svg")).count();
        }
        String page = Files.readString(folder.resolve("report/report.html"));
        Path visited = folder.resolve("visited.html");
        Files.writeString(
                visited,
                page.replace("<head>", "<head>" + LISTENER)
                        .replace("</body>", VISITOR + "</body>"));
        Matcher result = RESULT.matcher(open(browser.get(), visited));
        assertThat(result.find()).as("the visitor's notes in the page").isTrue();
        seen = new ObjectMapper().readTree(unescape(result.group(1)));
    }

    private static Optional<Path> browser() {
        String named = System.getProperty("deepep.browser");
        if (named != null) {
            return Optional.of(Path.of(named));
        }
        return Arrays.stream(System.getenv("PATH").split(File.pathSeparator, -1))
                .flatMap(place -> NAMES.stream().map(name -> Path.of(place, name)))
                .filter(Files::isExecutable)
                .findFirst();
    }

    /** The page as it is after it has loaded. */
    private static String open(Path browser, Path page) throws IOException, InterruptedException {
        Path dom = folder.resolve("dom.html");
        Process process =
                new ProcessBuilder(
                                browser.toString(),
                                "--headless",
                                "--no-sandbox",
                                "--disable-gpu",
                                "--disable-quic",
                                "--no-first-run",
                                "--disable-background-networking",
                                "--disable-component-update",
                                "--disable-sync",
                                "--window-size=1100,900",
                                "--user-data-dir="
                                        + Files.createDirectory(folder.resolve("profile")),
                                "--virtual-time-budget=20000",
                                "--dump-dom",
                                page.toUri().toString())
                        .redirectOutput(dom.toFile())
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        try {
            assertThat(process.waitFor(90, TimeUnit.SECONDS)).as("the browser has ended").isTrue();
        } finally {
            process.destroyForcibly();
        }
        return Files.readString(dom, StandardCharsets.UTF_8);
    }

    private static String unescape(String html) {
        return html.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    }

    private static List<Double> numbers(String field) {
        return seen.get(field).valueStream().map(JsonNode::asDouble).toList();
    }

    @Test
    void opensWithoutFaultsAndWithoutANetwork() {
        assertThat(seen.get("title").asText()).isEqualTo("deepep report");
        assertThat(seen.get("faults")).isEmpty();
        assertThat(seen.get("fetched")).isEmpty();
        assertThat(seen.get("broken")).isEmpty();
        assertThat(seen.get("overflow").asBoolean()).as("wider than the window").isFalse();
        assertThat(seen.get("sections").asInt())
                .as("one for each plot, and the answers")
                .isEqualTo(numPlots + 1);
    }

    @Test
    void allPlotsAreShown() {
        assertThat(numbers("images")).hasSize(numPlots).allMatch(width -> width > 500);
    }

    @Test
    void aPhoneShowsItWithoutScrollingThePage() {
        assertThat(seen.get("phoneWidth").asInt()).isLessThanOrEqualTo(360);
        assertThat(seen.get("phoneRows").asInt())
                .as("rows that say what they are about")
                .isPositive();
        assertThat(seen.get("phoneLetters").asDouble()).isGreaterThanOrEqualTo(14);
    }

    @Test
    void timesHaveUnits() {
        assertThat(seen.get("units").valueStream())
                .extracting(JsonNode::asText)
                .allMatch(time -> time.matches("[\\d.]+ (µs|ms)"));
    }

    @Test
    void tablesSortBothWays() {
        List<Double> ascending = numbers("ascending");
        assertThat(ascending).hasSize(36).isSorted();
        assertThat(numbers("descending")).isEqualTo(ascending.reversed());
        assertThat(seen.get("sort").asText()).isEqualTo("descending");
        assertThat(seen.get("names").valueStream()).extracting(JsonNode::asText).isSorted();
    }

    @Test
    void recordsOfOtherNumbersOfSmsAreShownOnDemand() {
        assertThat(seen.get("fastest").asInt()).isEqualTo(6);
        assertThat(seen.get("all").asInt()).isEqualTo(36);
        assertThat(seen.get("again").asInt()).isEqualTo(6);
    }
}

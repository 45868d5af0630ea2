package io.deepep.bench.report;

import io.deepep.bench.run.UsageException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The parts of a Markdown file that are made from records. Each lies between two comments, of which
 * the first says what to make:
 *
 * <pre>{@code
 * <!-- deepep:times records=2026-11-21-normal-4xh200-buffer/4096-tokens.json sms=24 -->
 * ...
 * <!-- deepep:end -->
 * }</pre>
 */
final class MarkdownBlocks {
    /** Or a code block, which may show such comments, or a comment that begins or ends nothing. */
    private static final Pattern BLOCK =
            Pattern.compile(
                    "^```.*?^```|(?<head>^<!-- deepep:(?<view>(?!end )[a-z]+)(?<options>( [a-z]+=\\S+)*) -->\n)"
                            + "(?<body>.*?)<!-- deepep:end -->|^(?<alone><!-- deepep:[^\n]*)",
                    Pattern.DOTALL | Pattern.MULTILINE);

    private static final Pattern OPTION = Pattern.compile("([a-z]+)=(\\S+)");

    private MarkdownBlocks() {}

    /** What a block asks for. */
    static final class Request {
        private final String view;
        private final Map<String, String> options;
        private final Set<String> unread;

        private Request(String view, Map<String, String> options) {
            this.view = view;
            this.options = options;
            unread = new TreeSet<>(options.keySet());
        }

        String view() {
            return view;
        }

        /**
         * An option.
         *
         * @throws UsageException if it was not given
         */
        String option(String name) {
            String value = option(name, null);
            if (value == null) {
                throw new UsageException("deepep:" + view + " lacks " + name + "=...");
            }
            return value;
        }

        String option(String name, String otherwise) {
            unread.remove(name);
            return options.getOrDefault(name, otherwise);
        }

        /**
         * Once the block is made.
         *
         * @throws UsageException if it has an option that nobody asked for
         */
        void requireAllRead() {
            if (!unread.isEmpty()) {
                throw new UsageException(
                        "deepep:" + view + " takes no " + String.join("=, ", unread) + "=");
            }
        }
    }

    /** The text with every block updated. */
    static String update(String markdown, Function<Request, String> make) {
        Matcher blocks = BLOCK.matcher(markdown);
        StringBuilder result = new StringBuilder();
        while (blocks.find()) {
            blocks.appendReplacement(result, Matcher.quoteReplacement(made(blocks, make)));
        }
        return blocks.appendTail(result).toString();
    }

    private static String made(MatchResult block, Function<Request, String> make) {
        if (block.group("alone") != null) {
            throw notPaired(block.group("alone"));
        }
        if (block.group("view") == null) {
            return block.group();
        }
        if (block.group("body").contains("<!-- deepep:")) {
            throw notPaired(block.group("head").strip());
        }
        Request request = new Request(block.group("view"), options(block.group("options")));
        return block.group("head") + make.apply(request) + "<!-- deepep:end -->";
    }

    private static UsageException notPaired(String comment) {
        return new UsageException(
                comment
                        + " is not one of <!-- deepep:VIEW name=value ... --> and the <!-- deepep:end --> that must"
                        + " follow each");
    }

    private static Map<String, String> options(String text) {
        Map<String, String> options = new HashMap<>();
        Matcher pairs = OPTION.matcher(text);
        while (pairs.find()) {
            options.put(pairs.group(1), pairs.group(2));
        }
        return options;
    }
}

package io.deepep.bench.report;

import io.deepep.bench.run.UsageException;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
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
    /** Or a code block, which may show such comments. */
    private static final Pattern BLOCK =
            Pattern.compile(
                    "^```.*?^```|(?<head>^<!-- deepep:(?<view>[a-z]+)(?<options>( [a-z]+=\\S+)*) -->\n)"
                            + ".*?<!-- deepep:end -->",
                    Pattern.DOTALL | Pattern.MULTILINE);

    private static final Pattern OPTION = Pattern.compile("([a-z]+)=(\\S+)");

    private MarkdownBlocks() {}

    /** What a block asks for. */
    record Request(String view, Map<String, String> options) {
        /**
         * An option.
         *
         * @throws UsageException if it was not given
         */
        String option(String name) {
            String value = options.get(name);
            if (value == null) {
                throw new UsageException("deepep:" + view + " lacks " + name + "=...");
            }
            return value;
        }

        String option(String name, String otherwise) {
            return options.getOrDefault(name, otherwise);
        }
    }

    /** The text with every block updated. */
    static String update(String markdown, Function<Request, String> make) {
        Matcher blocks = BLOCK.matcher(markdown);
        StringBuilder result = new StringBuilder();
        while (blocks.find()) {
            String made =
                    blocks.group("view") == null
                            ? blocks.group()
                            : blocks.group("head")
                                    + make.apply(
                                            new Request(
                                                    blocks.group("view"),
                                                    options(blocks.group("options"))))
                                    + "<!-- deepep:end -->";
            blocks.appendReplacement(result, Matcher.quoteReplacement(made));
        }
        return blocks.appendTail(result).toString();
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

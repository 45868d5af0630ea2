package io.deepep.bench.text;

import java.util.Locale;

/** Constants as people write them. */
public final class Names {
    private Names() {}

    /** In small letters, with hyphens: {@code low-latency}. */
    public static String of(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}

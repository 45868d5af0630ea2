package io.deepep.bench.lowlatency;

import static io.deepep.bench.lowlatency.LowLatencyFeature.ASYNC;
import static io.deepep.bench.lowlatency.LowLatencyFeature.HOOK;
import static io.deepep.bench.lowlatency.LowLatencyFeature.ZERO_COPY;

import io.deepep.LowLatencyFormat;
import io.deepep.bench.text.Names;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What one case of low-latency mode does.
 *
 * @param note what is special about the routing, or empty
 * @param format what travels in the dispatch
 * @param home what travels in the combine
 * @param features what is asked for
 */
record LowLatencyVariant(
        String note, LowLatencyFormat format, CombineRows home, Set<LowLatencyFeature> features) {
    static LowLatencyVariant of(LowLatencyFormat format, LowLatencyFeature... features) {
        Set<LowLatencyFeature> set = EnumSet.noneOf(LowLatencyFeature.class);
        set.addAll(Set.of(features));
        return new LowLatencyVariant("", format, CombineRows.BF16, set);
    }

    LowLatencyVariant noted(String what) {
        return new LowLatencyVariant(what, format, home, features);
    }

    LowLatencyVariant home(CombineRows rows) {
        return new LowLatencyVariant(note, format, rows, features);
    }

    /** Every format with every set of hook, async and zero-copy, home as BF16, FP8 and LogFMT. */
    static List<LowLatencyVariant> matrix() {
        LowLatencyFeature[] axes = {HOOK, ASYNC, ZERO_COPY};
        List<CombineRows> homes = List.of(CombineRows.BF16, CombineRows.FP8, CombineRows.LOGFMT);
        List<LowLatencyVariant> variants = new ArrayList<>();
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            for (int chosen = 0; chosen < homes.size() << axes.length; chosen++) {
                LowLatencyVariant variant = of(format).home(homes.get(chosen >> axes.length));
                for (int axis = 0; axis < axes.length; axis++) {
                    if ((chosen >> axis & 1) == 1) {
                        variant.features().add(axes[axis]);
                    }
                }
                variants.add(variant);
            }
        }
        return variants;
    }

    boolean has(LowLatencyFeature feature) {
        return features.contains(feature);
    }

    String name() {
        String type = Names.of(format);
        Stream<String> asked = features.stream().map(Names::of);
        String back = home == CombineRows.BF16 ? "" : "home-" + Names.of(home);
        String special = note.isEmpty() ? "" : "(" + note + ")";
        String words =
                Stream.concat(asked, Stream.of(back, special))
                        .filter(word -> !word.isEmpty())
                        .collect(Collectors.joining(" "));
        return String.format(Locale.ROOT, "%-16s %s", type, words).strip();
    }
}

package io.deepep.bench.lowlatency;

import static io.deepep.bench.lowlatency.LowLatencyFeature.ASYNC;
import static io.deepep.bench.lowlatency.LowLatencyFeature.FP8_HOME;
import static io.deepep.bench.lowlatency.LowLatencyFeature.HOOK;
import static io.deepep.bench.lowlatency.LowLatencyFeature.LOGFMT;
import static io.deepep.bench.lowlatency.LowLatencyFeature.PRE_REDUCED;
import static io.deepep.bench.lowlatency.LowLatencyFeature.ZERO_COPY;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyFormat;
import io.deepep.bench.text.Names;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * What one case of low-latency mode does.
 *
 * @param note what is special about the routing, or empty
 * @param format what travels in the dispatch
 * @param features what is asked for
 */
record LowLatencyVariant(String note, LowLatencyFormat format, Set<LowLatencyFeature> features) {
    static LowLatencyVariant of(LowLatencyFormat format, LowLatencyFeature... features) {
        Set<LowLatencyFeature> set = EnumSet.noneOf(LowLatencyFeature.class);
        set.addAll(Set.of(features));
        return new LowLatencyVariant("", format, set);
    }

    LowLatencyVariant noted(String what) {
        return new LowLatencyVariant(what, format, features);
    }

    /** Every format with every set of hook, async and zero-copy, home as BF16, FP8 and LogFMT. */
    static List<LowLatencyVariant> matrix() {
        LowLatencyFeature[] axes = {HOOK, ASYNC, ZERO_COPY};
        List<Set<LowLatencyFeature>> homes = List.of(Set.of(), Set.of(FP8_HOME), Set.of(LOGFMT));
        List<LowLatencyVariant> variants = new ArrayList<>();
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            for (int chosen = 0; chosen < homes.size() << axes.length; chosen++) {
                LowLatencyVariant variant = of(format);
                for (int axis = 0; axis < axes.length; axis++) {
                    if ((chosen >> axis & 1) == 1) {
                        variant.features().add(axes[axis]);
                    }
                }
                variant.features().addAll(homes.get(chosen >> axes.length));
                variants.add(variant);
            }
        }
        return variants;
    }

    CombineRows homeRows() {
        CombineFormat home = CombineFormat.BF16;
        if (has(FP8_HOME)) {
            home = CombineFormat.FP8;
        } else if (has(LOGFMT)) {
            home = CombineFormat.LOGFMT;
        }
        return CombineRows.of(home, has(PRE_REDUCED));
    }

    boolean has(LowLatencyFeature feature) {
        return features.contains(feature);
    }

    String name() {
        String type = Names.of(format);
        String asked = features.stream().map(Names::of).collect(Collectors.joining(" "));
        String special = note.isEmpty() ? "" : "(" + note + ")";
        return String.format(
                        Locale.ROOT, "%-16s %s", type, String.join(" ", asked, special).strip())
                .strip();
    }
}

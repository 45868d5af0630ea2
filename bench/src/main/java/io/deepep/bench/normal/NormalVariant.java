package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.bench.text.Names;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * What one case of normal mode does.
 *
 * @param note what is special about the routing, or empty
 * @param dtype BF16 or FP8 tokens
 * @param features what is asked for
 * @param alignment of the counts per expert
 */
record NormalVariant(String note, DType dtype, Set<NormalFeature> features, int alignment) {
    static NormalVariant of(DType dtype, NormalFeature... features) {
        Set<NormalFeature> set = EnumSet.noneOf(NormalFeature.class);
        set.addAll(Set.of(features));
        return new NormalVariant("", dtype, set, 1);
    }

    NormalVariant noted(String what) {
        return new NormalVariant(what, dtype, features, alignment);
    }

    NormalVariant aligned(int rows) {
        return new NormalVariant(note, dtype, features, rows);
    }

    boolean has(NormalFeature feature) {
        return features.contains(feature);
    }

    String name() {
        String type = dtype == DType.FP8_E4M3 ? "fp8 " : "bf16";
        String asked = features.stream().map(Names::of).collect(Collectors.joining(" "));
        String rows = alignment == 1 ? "" : String.format(Locale.ROOT, " align-%d", alignment);
        return (type + " " + asked + rows + (note.isEmpty() ? "" : " (" + note + ")"))
                .stripTrailing();
    }
}

package io.deepep.bench.normal;

import static io.deepep.DType.BF16;
import static io.deepep.DType.FP8_E4M3;
import static io.deepep.bench.normal.NormalFeature.ASYNC;
import static io.deepep.bench.normal.NormalFeature.BIAS;
import static io.deepep.bench.normal.NormalFeature.CACHED;
import static io.deepep.bench.normal.NormalFeature.COMBINE_BUFFER;
import static io.deepep.bench.normal.NormalFeature.COMBINE_IN_PLACE;
import static io.deepep.bench.normal.NormalFeature.COPY;
import static io.deepep.bench.normal.NormalFeature.EXPANDED;
import static io.deepep.bench.normal.NormalFeature.FP8_HOME;
import static io.deepep.bench.normal.NormalFeature.OUT;
import static io.deepep.bench.normal.NormalFeature.PREVIOUS_EVENT;
import static io.deepep.bench.normal.NormalFeature.REPEAT;
import static io.deepep.bench.normal.NormalFeature.TOPK;
import static io.deepep.bench.normal.NormalFeature.TWO_BIASES;
import static io.deepep.bench.normal.NormalFeature.WEIGHTS;
import static io.deepep.bench.normal.NormalFeature.WORST_CASE;

import io.deepep.DType;
import io.deepep.bench.run.Job;
import io.deepep.testkit.routing.Routing;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a test of normal mode goes through: DeepEP's matrix, then what the matrix leaves out, then
 * routings that are out of the ordinary.
 */
final class NormalCases {
    private NormalCases() {}

    /**
     * {BF16, FP8} x {with, without top-k} x {sync, async} x {no, some} previous event. Without
     * top-k also a cached dispatch.
     */
    static List<NormalVariant> matrix(boolean fp8) {
        List<NormalVariant> variants = new ArrayList<>();
        for (DType dtype : fp8 ? List.of(BF16, FP8_E4M3) : List.of(BF16)) {
            for (Set<NormalFeature> kind : List.of(Set.of(TOPK, WEIGHTS), Set.of(CACHED))) {
                for (Set<NormalFeature> when :
                        List.of(
                                Set.<NormalFeature>of(),
                                Set.of(PREVIOUS_EVENT),
                                Set.of(ASYNC),
                                Set.of(ASYNC, PREVIOUS_EVENT))) {
                    NormalVariant variant = NormalVariant.of(dtype);
                    variant.features().addAll(kind);
                    variant.features().addAll(when);
                    variants.add(variant);
                }
            }
        }
        return variants;
    }

    /** Where results lie, what is summed, and how rows are laid out. */
    static List<NormalVariant> others(boolean fp8) {
        List<NormalVariant> variants =
                new ArrayList<>(
                        List.of(
                                NormalVariant.of(BF16, TOPK, COPY),
                                NormalVariant.of(BF16, TOPK, COMBINE_IN_PLACE),
                                NormalVariant.of(BF16, TOPK, COMBINE_BUFFER),
                                NormalVariant.of(BF16, TOPK, CACHED, COPY),
                                NormalVariant.of(BF16, TOPK, WORST_CASE),
                                NormalVariant.of(BF16, TOPK, WORST_CASE, ASYNC, COPY),
                                NormalVariant.of(BF16, TOPK).aligned(32),
                                NormalVariant.of(BF16, TOPK, EXPANDED, WEIGHTS),
                                NormalVariant.of(BF16, TOPK, EXPANDED, COPY).aligned(16),
                                NormalVariant.of(BF16, TOPK, BIAS),
                                NormalVariant.of(BF16, TOPK, TWO_BIASES, WEIGHTS, OUT),
                                NormalVariant.of(BF16, TOPK, WEIGHTS, REPEAT)));
        if (fp8) {
            variants.addAll(
                    List.of(
                            NormalVariant.of(BF16, TOPK, FP8_HOME),
                            NormalVariant.of(BF16, TOPK, COMBINE_BUFFER, FP8_HOME, WEIGHTS),
                            NormalVariant.of(BF16, TOPK, COMBINE_IN_PLACE, FP8_HOME, REPEAT),
                            NormalVariant.of(
                                    FP8_E4M3, TOPK, EXPANDED, FP8_HOME, TWO_BIASES, WEIGHTS),
                            NormalVariant.of(FP8_E4M3, TOPK, COPY),
                            NormalVariant.of(FP8_E4M3, TOPK, WORST_CASE),
                            NormalVariant.of(FP8_E4M3, TOPK, EXPANDED).aligned(8),
                            NormalVariant.of(FP8_E4M3, TOPK, ASYNC, REPEAT)));
        }
        return variants;
    }

    /**
     * Routings of the job's shape that are harder than the job's own, by what is special about
     * them.
     */
    static Map<String, Routing> routings(Job job) {
        Map<String, Routing> routings = job.hardRoutings(job.variations().numExperts() - 1);
        routings.put("all masked", job.variations().withMaskedShare(1).generate());
        return routings;
    }

    /** The variant that the special routings run with. */
    static NormalVariant ofRouting(String note) {
        return NormalVariant.of(BF16, TOPK, WEIGHTS).noted(note);
    }
}

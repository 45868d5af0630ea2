package io.deepep.bench;

import io.deepep.bench.run.Job;
import io.deepep.bench.run.UsageException;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** Numbers of tokens to measure with, over buffers that are opened for the largest. */
final class MeasuredTokens {
    private static final List<Integer> USUAL = List.of(1, 8, 32, 128);

    @Option(
            names = "--measured-tokens",
            paramLabel = "N",
            split = ",",
            description =
                    "Tokens per rank to measure with, each at most --num-tokens, for which buffers"
                            + " are opened (default: --num-tokens; on GPUs also those of 1, 8, 32 and"
                            + " 128 that are less).")
    private List<Integer> tokens = List.of();

    /**
     * The numbers for a job.
     *
     * @throws UsageException if they do not fit it
     */
    List<Integer> of(Job job) {
        int most = job.routing().maxTokens();
        for (int number : tokens) {
            if (number < 1 || number > most) {
                throw new UsageException(
                        "--measured-tokens=%s is not in [1, %s], the tokens that a rank can have"
                                .formatted(number, most));
            }
        }
        if (!tokens.isEmpty()) {
            return tokens;
        }
        List<Integer> usual = new ArrayList<>();
        if (job.placement().isCuda()) {
            USUAL.stream().filter(number -> number < most).forEach(usual::add);
        }
        usual.add(most);
        return usual;
    }
}

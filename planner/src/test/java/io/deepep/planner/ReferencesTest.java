package io.deepep.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.testkit.routing.Gate;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every time of this library's {@code Buffer} is one of the records in docs/measurements. */
@Tag("checkout")
final class ReferencesTest {
    private static final Path RECORDS = Path.of("../docs/measurements");
    private static final List<String> UNIFORM =
            List.of(
                    "2026-11-21-normal-4xh200-staging/128-tokens.json",
                    "2026-11-21-normal-4xh200-buffer/4096-tokens.json",
                    "2026-11-21-normal-4xh200-buffer/4096-tokens-2-ranks.json",
                    "2026-11-21-normal-4xh200-buffer/8192-tokens.json",
                    "2026-11-21-4xh200/low-latency.json");
    private static final List<String> SKEWED =
            List.of("2026-11-21-normal-4xh200-buffer/4096-tokens-zipf.json");

    static Stream<Reference> ofBuffer() {
        return Stream.of(References.buffer(), References.lowLatencyBuffer()).flatMap(List::stream);
    }

    @ParameterizedTest
    @MethodSource("ofBuffer")
    void everyTimeWasRecorded(Reference reference) throws Exception {
        boolean skewed = !(reference.gate() instanceof Gate.Uniform);
        for (Reference.Time time : reference.times()) {
            assertThat(recorded(skewed ? SKEWED : UNIFORM, reference, time))
                    .as("%s of %s", time.op(), reference)
                    .isCloseTo(time.figure(), within(0.051));
        }
    }

    private static double recorded(List<String> files, Reference reference, Reference.Time time)
            throws Exception {
        boolean normal = reference.mode() == Mode.NORMAL;
        String op =
                (normal ? "" : "ll-")
                        + (time.op() == Op.DISPATCH ? "dispatch" : "combine-zero-copy");
        String fp8 = normal ? "fp8_e4m3" : "fp8";
        for (String file : files) {
            for (JsonNode each : new ObjectMapper().readTree(RECORDS.resolve(file).toFile())) {
                if (each.get("ranks").asInt() == reference.topology().numRanks()
                        && each.get("tokens").asInt() == reference.shape().numTokens()
                        && each.get("op").asText().equals(op)
                        && each.get("dtype")
                                .asText()
                                .equals(time.dtype().equals("BF16") ? "bf16" : fp8)
                        && each.get("sms").asInt() == (normal ? 24 : 132)) {
                    return each.get("p50Micros").asDouble();
                }
            }
        }
        throw new AssertionError("no record of " + op + " of " + reference);
    }
}

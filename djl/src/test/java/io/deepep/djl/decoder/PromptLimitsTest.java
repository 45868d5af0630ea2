package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.djl.exchange.Transport;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Requests at the limits of a rank, and one past each. */
class PromptLimitsTest {
    private static final PromptLimits LIMITS =
            new PromptLimits(new DecoderOptions(2, 8, 10, DType.BF16, Transport.BF16), 100);

    @ParameterizedTest
    @CsvSource({"2, 5, 1", "2, 5, 3", "1, 7, 1", "0, 1, 7"})
    void whatFitsIsTaken(int numPrompts, int length, int numNewTokens) {
        for (long token : new long[] {0, 99}) {
            assertThatCode(() -> LIMITS.check(prompts(numPrompts, length, token), numNewTokens))
                    .doesNotThrowAnyException();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "3, 1, 1, 0, maxSequences=2",
        "1, 1, 0, 0, numNewTokens=0",
        "0, 1, 0, 0, numNewTokens=0",
        "0, 1, 8, 0, numNewTokens=8",
        "1, 0, 1, 0, empty",
        "1, 7, 2, 0, maxLength=8",
        "2, 6, 1, 0, maxPromptTokens=10",
        "1, 1, 1, -1, token -1",
        "1, 1, 1, 100, token 100"
    })
    void whatDoesNotFitIsRefused(
            int numPrompts, int length, int numNewTokens, long token, String message) {
        List<long[]> prompts = prompts(numPrompts, length, token);
        assertThatThrownBy(() -> LIMITS.check(prompts, numNewTokens))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
    }

    private static List<long[]> prompts(int count, int length, long token) {
        return IntStream.range(0, count)
                .mapToObj(_ -> IntStream.range(0, length).mapToLong(_ -> token).toArray())
                .toList();
    }
}

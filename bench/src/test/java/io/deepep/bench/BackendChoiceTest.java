package io.deepep.bench;

import static io.deepep.bench.CommandLines.runLine;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.deepep.cuda.CudaDriver;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What {@code --backend} and {@code --gpus} do where there is no GPU. */
final class BackendChoiceTest {
    private static final String SMALL =
            " --ranks 2 --num-experts 8 --num-tokens 5 --hidden 256 --num-topk 3 --timeout 30";

    private static String whyNoCuda() {
        assumeFalse(CudaDriver.isAvailable(), "there is a GPU");
        return CudaDriver.unavailabilityReason().orElseThrow();
    }

    @ParameterizedTest
    @ValueSource(strings = {"test-intranode", "test-low-latency", "bench normal"})
    void cudaWithoutADriverIsOneLineWithCauseAndCure(String command) {
        String reason = whyNoCuda();
        assertThat(reason).contains("; ");
        runLine(command + " --backend cuda" + SMALL).requireComplaint("deepep: " + reason);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "test-intranode",
                "test-intranode --backend auto",
                "test-intranode --gpus 2",
                "test-low-latency --backend auto",
                "bench normal --repeats 1 --warmups 0"
            })
    void autoTakesTheHostAndSaysWhy(String command) {
        String reason = whyNoCuda();
        assertThat(runLine(command + SMALL).requirePassed().outLines().getFirst())
                .contains("HOST backend (auto: " + reason + ")");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "test-intranode --gpus 0 | deepep: --gpus=0 is not in [1, 2048]",
                "test-intranode --gpus 2 --backend host | deepep: --gpus=2 does not go with --backend=host, which uses no GPUs",
                "bench normal --network ibgda --backend host | deepep: --network=ibgda connects GPUs; give --backend=cuda, or leave it out",
                "test-intranode --sms 8,3 | deepep: --sms: numSms=3 must be 1 or an even number of at least 2",
            })
    void numbersAreCheckedWithoutADriver(String arguments, String complaint) {
        runLine(arguments + SMALL).requireComplaint(complaint);
    }
}

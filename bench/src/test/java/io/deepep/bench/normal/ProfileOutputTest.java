package io.deepep.bench.normal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.MachineProfile;
import io.deepep.bench.measure.OperationOptions;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.report.BenchRun;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.UsageException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which numbers of multiprocessors a profile gets from records of this repository. */
@Tag("checkout")
class ProfileOutputTest {
    private static final Path MEASURED =
            Path.of("../docs/measurements/2026-11-21-trials-4xh200/staged-after.json");

    private static List<OperationRecord> records() {
        return BenchRun.read(MEASURED).records();
    }

    private static List<OperationRecord> without(String op) {
        return records().stream().filter(each -> !each.op().equals(op)).toList();
    }

    /** 12 are within 1 % in all dispatches. 32 suit staged rows best, and lose 3 % in place. */
    @Test
    void fewestThatServeAllFormsAreChosen() {
        assertThat(ProfileOutput.of(records()))
                .isEqualTo(new MachineProfile("NVIDIA H200", 1, 12, 24));
    }

    @Test
    void combinesInPlaceAloneWouldDoWithFewer() {
        assertThat(ProfileOutput.of(without("combine-staged")).combineSms()).isEqualTo(12);
    }

    @Test
    void combinesInFp8DoNotCount(@TempDir Path folder) throws Exception {
        String form = "\"dtype\" : \"%s\",\n  \"op\" : \"combine-staged\"";
        String bf16 = form.formatted("bf16");
        String text = Files.readString(MEASURED);
        assertThat(text).contains(bf16);
        Path file = folder.resolve("fp8.json");
        Files.writeString(file, text.replace(bf16, form.formatted("fp8_e4m3")));
        assertThat(ProfileOutput.of(BenchRun.read(file).records()).combineSms()).isEqualTo(12);
    }

    @Test
    void theFileIsReadByBuffers(@TempDir Path folder) throws Exception {
        MachineProfile profile = ProfileOutput.of(records());
        String text = ProfileOutput.text(profile, records());
        assertThat(text).contains("commit ", "4 ranks, up to 4096 tokens each, hidden 7168");
        Path file = Files.writeString(folder.resolve("p"), text);
        assertThat(MachineProfile.read(file)).isEqualTo(profile);
    }

    @Test
    void theHostHasNoLinks() {
        Job host = Job.onHost(2, 2, 128, 4, 2);
        new ProfileOutput(null).require(host, new OperationOptions());
        assertThatThrownBy(
                        () -> new ProfileOutput(Path.of("p")).require(host, new OperationOptions()))
                .isInstanceOf(UsageException.class)
                .hasMessage("--profile=p is for GPUs, but this is the HOST backend");
    }

    @Test
    void ranksThatShareGpusDoNotMeasureLinks() {
        ProfileOutput output = new ProfileOutput(Path.of("p"));
        Placement two = new Placement(2, 8, "");
        output.requireOwnGpus(two, 2);
        assertThatThrownBy(() -> output.requireOwnGpus(two, 3))
                .isInstanceOf(UsageException.class)
                .hasMessage(
                        "--profile=p needs a GPU for each rank: rows between ranks of one GPU cross no link, and"
                                + " 3 ranks share 2 GPUs here");
    }
}

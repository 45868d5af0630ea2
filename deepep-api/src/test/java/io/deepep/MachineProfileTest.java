package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The file of a profile: what it holds, and what is refused. */
class MachineProfileTest {
    private static final String KEYS =
            "a profile has exactly [combineSms, dispatchSms, gpu, nodes]";

    @TempDir private Path folder;

    private Path file(String text) throws IOException {
        return Files.writeString(folder.resolve("p.properties"), text);
    }

    private void requireRefused(Path file, String... words) {
        assertThatThrownBy(() -> MachineProfile.read(file))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("profile " + file)
                .hasMessageContaining("deepep bench normal --profile")
                .hasMessageContainingAll(words);
    }

    @ParameterizedTest
    @ValueSource(strings = {"NVIDIA H200", "  a = b # c", "back\\slash", "Größe"})
    void whatIsWrittenIsRead(String gpu) throws IOException {
        MachineProfile written = new MachineProfile(gpu.strip(), 1, 12, 24);
        assertThat(MachineProfile.read(file("# why\n" + written.toText()))).isEqualTo(written);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "gpu=G;nodes=1;dispatchSms=12 | its keys are [dispatchSms, gpu, nodes], but "
                        + KEYS,
                "gpu=G;nodes=1;dispatchSms=12;combineSms=24;more=1 | combineSms, dispatchSms, gpu, more, nodes]",
                "gpu=G;nodes=1;dispatchSms=12;combineSms=x | combineSms=x is not a whole number",
                "gpu=G;nodes=1;dispatchSms=12;combineSms=9999999999 | combineSms=9999999999 is not a whole",
                "gpu=G;nodes=1;dispatchSms=13;combineSms=24 | dispatchSms: numSms=13 must be 1 or an even number",
                "gpu=G;nodes=1;dispatchSms=12;combineSms=-2 | combineSms: numSms=-2 must be 1 or an even number",
                "gpu=G;nodes=0;dispatchSms=12;combineSms=24 | nodes=0 must be at least 1",
                "gpu=G;nodes=2;dispatchSms=1;combineSms=24 | dispatchSms=1 is for one node, but nodes=2",
                "gpu= ;nodes=1;dispatchSms=12;combineSms=24 | gpu is empty",
                "gpu=\\u12;nodes=1;dispatchSms=12;combineSms=24 | Malformed",
            })
    void whatIsNoProfileIsRefused(String text, String why) throws IOException {
        requireRefused(file(text.replace(';', '\n')), why);
    }

    @Test
    void whatCannotBeReadIsRefused() throws IOException {
        requireRefused(folder.resolve("none"), "cannot be read (NoSuchFileException)");
        requireRefused(folder, "cannot be read");
        Path latin = folder.resolve("latin");
        Files.write(latin, "gpu=Größe".getBytes(StandardCharsets.ISO_8859_1));
        requireRefused(latin, "cannot be read (MalformedInputException");
    }
}

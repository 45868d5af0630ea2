package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpUnavailableException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("checkout")
class CudaModuleTest {
    /** And the artifact that it names is one that is published. */
    @ParameterizedTest
    @CsvSource({"amd64, linux-x86_64-cuda13", "aarch64, linux-aarch64-cuda13"})
    void missingDeviceCodeIsToBeHadForTheProcessor(String processor, String classifier)
            throws IOException {
        requirePublished(classifier, DeviceCode.cure(processor));
        assertThatThrownBy(() -> CudaModule.loadResource(null, "none", null))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("device code none is not on the class path")
                .hasMessageContaining(DeviceCode.cure());
    }

    @Test
    void thereIsDeviceCodeForNvshmem() throws IOException {
        requirePublished("linux-x86_64-cuda13-nvshmem3", DeviceCode.NVSHMEM_CURE);
    }

    private static void requirePublished(String classifier, String cure) throws IOException {
        assertThat(cure).containsPattern("the classifier " + classifier + "[ ;]");
        assertThat(Files.readString(Path.of("../library/pom.xml")))
                .contains("<classifier>" + classifier + "</classifier>");
    }
}

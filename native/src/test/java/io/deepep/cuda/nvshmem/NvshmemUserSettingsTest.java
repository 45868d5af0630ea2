package io.deepep.cuda.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpUnavailableException;
import java.util.Map;
import org.junit.jupiter.api.Test;

class NvshmemUserSettingsTest {
    private static final NvshmemUserSettings SETTINGS =
            new NvshmemUserSettings(
                    Map.of(
                            "NVSHMEM_QP_DEPTH", " 2048 ",
                            "NVSHMEM_DISABLE_P2P", "yes",
                            "NVSHMEM_IB_SL", "gold",
                            "NVSHMEM_HCA_LIST", "mlx5_0:1",
                            "NVSHMEM_DEBUG", "INFO",
                            "UCX_NET_DEVICES", "mlx5_1:1",
                            "PATH", "/bin"));

    @Test
    void variablesOfOthersAreNotRead() {
        assertThat(SETTINGS.text("PATH")).isEmpty();
        assertThat(SETTINGS.text("UCX_NET_DEVICES")).contains("mlx5_1:1");
        assertThat(SETTINGS.text("NVSHMEM_IB_GID_INDEX")).isEmpty();
    }

    @Test
    void numbersAndFlags() {
        assertThat(SETTINGS.number("NVSHMEM_QP_DEPTH")).hasValue(2048);
        assertThat(SETTINGS.number("NVSHMEM_IB_GID_INDEX")).isEmpty();
        assertThat(SETTINGS.flag("NVSHMEM_DISABLE_P2P")).isTrue();
        assertThat(SETTINGS.flag("NVSHMEM_DISABLE_NVLS")).isFalse();
        assertThatThrownBy(() -> SETTINGS.number("NVSHMEM_IB_SL"))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("NVSHMEM_IB_SL=gold is not a number");
    }

    @Test
    void sameValueInOtherWordsAgrees() {
        assertThatCode(() -> SETTINGS.requireAgreement(Map.of("NVSHMEM_DISABLE_P2P", "1")))
                .doesNotThrowAnyException();
        assertThatThrownBy(() -> SETTINGS.requireAgreement(Map.of("NVSHMEM_DISABLE_P2P", "0")))
                .hasMessageContaining("NVSHMEM_DISABLE_P2P=yes is set in the environment");
    }

    @Test
    void ranksCompareWhatTheyHaveInCommon() {
        assertThat(SETTINGS.shared())
                .containsOnlyKeys("NVSHMEM_QP_DEPTH", "NVSHMEM_DISABLE_P2P", "NVSHMEM_IB_SL");
    }
}

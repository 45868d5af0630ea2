package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.spi.BufferProvider;
import io.deepep.spi.NodeSize;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which configurations a buffer takes where none is given. */
class NormalDefaultsTest {
    private static final Device GPU = Device.cuda(0);
    private static final int H200_SMS = Config.recommended(1).numSms();

    @TempDir private Path folder;

    @AfterEach
    void clearProperty() {
        System.clearProperty("deepep.profile");
    }

    private Path profile(String name, MachineProfile profile) throws IOException {
        return Files.writeString(folder.resolve(name), profile.toText());
    }

    /** A GPU called {@code B200}, with links as given. */
    private record OneGpu(double linkDemand) implements BufferProvider {
        @Override
        public double linkDemand(Device device) {
            return linkDemand;
        }

        @Override
        public String gpuName(Device device) {
            return device.equals(GPU) ? "B200" : "";
        }

        @Override
        public String nvlinkDomain(Device device) {
            return "";
        }

        @Override
        public int numCudaDevices() {
            return 1;
        }

        @Override
        public Buffer open(BufferOptions options) {
            throw new AssertionError("nothing is opened here");
        }

        @Override
        public Buffer join(BufferOptions options) {
            throw new AssertionError("nothing is opened here");
        }

        @Override
        public long normalNvlBytes(Config config, NormalLimits limits, EpTopology topology) {
            return 0;
        }

        @Override
        public long normalRdmaBytes(Config config, NormalLimits limits, EpTopology topology) {
            return 0;
        }

        @Override
        public long lowLatencyRdmaBytes(LowLatencyLimits limits, EpTopology topology) {
            return 0;
        }
    }

    /** What the only rank of a group would open. */
    private static BufferOptions options(double linkDemand, Consumer<GivenOptions> changes) {
        try (InProcessGroup group = InProcessGroup.of(1)) {
            GivenOptions given = new GivenOptions(group.communicator(0));
            given.device = GPU;
            given.normal = NormalLimits.of(1, 8, 1, 1);
            changes.accept(given);
            return given.agreed(new OneGpu(linkDemand), NodeSize.Call.OPEN);
        }
    }

    private static void requireSms(BufferOptions options, int dispatch, int combine) {
        assertThat(options.dispatchConfig().numSms()).isEqualTo(dispatch);
        assertThat(options.combineConfig().numSms()).isEqualTo(combine);
    }

    @Test
    void fasterLinksTakeMoreMultiprocessors() {
        requireSms(options(1, given -> {}), H200_SMS, H200_SMS);
        requireSms(options(2.015, given -> {}), 40, 40);
        requireSms(options(2, given -> given.device = Device.host()), H200_SMS, H200_SMS);
        for (double demand = 1; demand < 4; demand += 0.01) {
            assertThat(NormalDefaults.forLinks(H200_SMS, demand) % 2).isZero();
        }
    }

    @Test
    void betweenNodesACombineTakesMoreThanADispatch() {
        EpTopology nodes = new EpTopology(0, 4, 2);
        NormalDefaults gpus = NormalDefaults.of(nodes, GPU, new OneGpu(2));
        assertThat(gpus).isEqualTo(NormalDefaults.acrossNodes(4));
        assertThat(gpus.dispatch()).isEqualTo(Config.recommended(4).withNumSms(16));
        assertThat(gpus.combine()).isEqualTo(Config.recommended(4).withNumSms(24));
        assertThat(NormalDefaults.of(nodes, Device.host(), new OneGpu(2)))
                .isEqualTo(NormalDefaults.recommended(4));
    }

    @Test
    void whatIsGivenWinsOverTheProfileAndThatOverTheRule() throws IOException {
        Path file = profile("p", new MachineProfile("B200", 1, 26, 38));
        requireSms(options(2, given -> given.profile = ProfileFile.read(file)), 26, 38);
        BufferOptions both =
                options(
                        2,
                        given -> {
                            given.profile = ProfileFile.read(file);
                            given.combineConfig = Config.recommended(1).withNumSms(6);
                        });
        requireSms(both, 26, 6);
        assertThat(both.defaults().combine().numSms()).isEqualTo(38);
    }

    @Test
    void thePropertyIsForGpusAndForBuffersWithoutAProfile() throws IOException {
        System.setProperty(
                "deepep.profile", profile("a", new MachineProfile("B200", 1, 8, 10)).toString());
        Path other = profile("b", new MachineProfile("B200", 1, 26, 38));
        requireSms(options(2, given -> {}), 8, 10);
        requireSms(options(2, given -> given.profile = ProfileFile.read(other)), 26, 38);
        requireSms(options(2, given -> given.device = Device.host()), H200_SMS, H200_SMS);
        System.setProperty("deepep.profile", "/no/such/file");
        assertThatThrownBy(() -> options(2, given -> {}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("profile /no/such/file cannot be read");
        Config own = Config.recommended(1).withNumSms(2);
        requireSms(options(2, given -> given.dispatchConfig = given.combineConfig = own), 2, 2);
    }

    @Test
    void aGpuIsNotAskedForWhatIsNotNeeded() {
        Config own = Config.recommended(1).withNumSms(2);
        BufferOptions given = options(2, all -> all.dispatchConfig = all.combineConfig = own);
        assertThat(given.defaults()).isEqualTo(NormalDefaults.recommended(1));
        BufferOptions lowLatency =
                options(
                        2,
                        all -> {
                            all.normal = null;
                            all.lowLatency = new LowLatencyLimits(1, 128, 1, 1);
                        });
        assertThat(lowLatency.defaults()).isEqualTo(NormalDefaults.recommended(1));
    }

    @Test
    void aProfileOfAnotherMachineIsRefused() throws IOException {
        Path file = profile("p", new MachineProfile("NVIDIA H200", 1, 12, 24));
        String cure =
                "; write a profile with deepep bench normal --profile on this machine, or give dispatchConfig";
        requireRefused(file, GPU, "is for gpu=NVIDIA H200, but device=cuda:0 is B200" + cure);
        requireRefused(file, Device.cuda(3), "but device=cuda:3 is not visible here" + cure);
        requireRefused(file, Device.host(), "but device=host is no GPU" + cure);
        Path nodes = profile("n", new MachineProfile("B200", 2, 12, 24));
        requireRefused(nodes, GPU, "is for nodes=2, but the group has 1" + cure);
        ProfileFile four = ProfileFile.read(profile("f", new MachineProfile("B200", 4, 12, 24)));
        four.requireNodes(new EpTopology(0, 4, 2)); // one for several nodes serves any number
    }

    private static void requireRefused(Path file, Device device, String why) {
        assertThatThrownBy(
                        () ->
                                options(
                                        1,
                                        given -> {
                                            given.profile = ProfileFile.read(file);
                                            given.device = device;
                                        }))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("profile " + file)
                .hasMessageContaining(why);
    }
}

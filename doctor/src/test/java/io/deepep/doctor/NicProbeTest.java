package io.deepep.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.testkit.Programs;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What cards say of themselves: the card in software, which says what it has, and none. */
@Tag("checkout")
class NicProbeTest {
    private static final Path BUILD = Path.of("../native/src/softcard/build.sh");
    private static final Path HEADERS = Path.of("/usr/include/infiniband/mlx5dv.h");

    /** On any machine; libibverbs lists the devices of the kernel and no others. */
    @Test
    void thereAreAsManyCardsAsTheLibraryLists() {
        boolean library = RdmaDevice.unavailabilityReason().isEmpty();
        assertThat(NicProbe.read(false).stream().map(NicFacts::hca))
                .containsExactlyElementsOf(library ? RdmaDevice.names() : List.of());
    }

    @Test
    void cardsSayWhatTheyHave(@TempDir Path folder) throws Exception {
        assertThat(probe(folder, "", 2))
                .endsWith(
                        "mlx5_0 [] software 8192 of 32768, relaxed true, lacks [] mlx5_0:1 true 4096 2 mlx5_0:2 true 4096 2",
                        "mlx5_1 [] software 8192 of 32768, relaxed true, lacks [] mlx5_1:1 true 4096 2 mlx5_1:2 true 4096 2");
    }

    @Test
    void aCardThatCannotBeOpenedSaysWhy(@TempDir Path folder) throws Exception {
        assertThat(probe(folder, "refuse 0", 1).getLast())
                .startsWith(
                        "mlx5_0 [ibv_open_device failed on mlx5_0: Cannot allocate memory (12)]");
    }

    @Test
    void aPortThatIsDownIsSaidSo(@TempDir Path folder) throws Exception {
        assertThat(probe(folder, "port down", 1).getLast()).contains("mlx5_0:1 false");
    }

    /** In a process of its own, which the library's variables are set for. */
    private static List<String> probe(Path folder, String faults, int numDevices) throws Exception {
        Assumptions.assumeTrue(Files.exists(HEADERS), "no libibverbs-dev: " + HEADERS);
        Path libraries = Path.of("../native/target/softcard").toAbsolutePath().normalize();
        Programs.run("bash", BUILD.toString(), libraries.toString()).requireSuccess();
        ProcessBuilder program = Programs.java(Program.class, List.of());
        program.environment().put("LD_LIBRARY_PATH", libraries.toString());
        program.environment().put("DEEPEP_CARD_DEVICES", Integer.toString(numDevices));
        program.environment().put("DEEPEP_CARD_PORTS", "2");
        program.environment().put("DEEPEP_CARD_FOLDER", folder.toString());
        program.environment().put("DEEPEP_CARD_FAULTS", faults);
        return Programs.run(program).requireSuccess().lines().toList();
    }

    /** Prints what the cards say. */
    static final class Program {
        private Program() {}

        public static void main(String[] arguments) {
            for (NicFacts card : NicProbe.read(false)) {
                StringBuilder line = new StringBuilder();
                line.append(
                        "%s [%s] %s %d of %d, relaxed %b, lacks %s"
                                .formatted(
                                        card.hca(),
                                        card.problem(),
                                        card.firmware(),
                                        card.maxQueuePairs(),
                                        card.maxQueuePairEntries(),
                                        card.relaxedOrdering(),
                                        card.lacks()));
                for (NicFacts.Port port : card.ports()) {
                    line.append(
                            " %s %b %d %d"
                                    .formatted(
                                            port.name(),
                                            port.active(),
                                            port.mtu(),
                                            port.gids().size()));
                }
                System.out.println(line);
            }
        }
    }
}

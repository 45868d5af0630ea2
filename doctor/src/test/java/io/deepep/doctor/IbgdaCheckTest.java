package io.deepep.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the doctor says of cards that GPUs are to drive, one of which is not as it should be. */
class IbgdaCheckTest {
    private static final String OTHER = "mlx5_bond_1";

    @TempDir private Path root;
    private FixtureMachine machine;

    @BeforeEach
    void create() {
        machine = new FixtureMachine(root);
    }

    private DoctorReport with(NicFacts second) {
        List<NicFacts> cards = new ArrayList<>(FixtureMachine.cards());
        cards.set(1, second);
        return machine.examine(FixtureMachine.gpus(true), cards);
    }

    /** Each of the texts says what does not work. */
    private static NicFacts tried(String dmaBuf, String peerMem, String queues, String doorbells) {
        NicFacts.Trial trial = new NicFacts.Trial("cuda:0", "", dmaBuf, peerMem, queues, doorbells);
        return FixtureMachine.card(OTHER, List.of(), trial);
    }

    private static Finding finding(DoctorReport report, String item) {
        return FixtureMachine.finding(report, "IBGDA", item);
    }

    private static Way ownWay(DoctorReport report) {
        return FixtureMachine.way(report, Way.OWN_IBGDA);
    }

    private static void assertStops(DoctorReport report, String item) {
        assertThat(finding(report, item).status()).isEqualTo(Finding.Status.MISSING);
        assertThat(finding(report, item).cure()).isNotBlank();
        assertThat(ownWay(report).possible()).isFalse();
        assertThat(ownWay(report).detail()).isEqualTo("missing: IBGDA " + item);
    }

    @Test
    void goodCardsSayWhatTheyHave() {
        DoctorReport report = with(FixtureMachine.cards().get(1));
        assertThat(report.findings().stream().filter(f -> f.topic().equals("IBGDA")))
                .hasSize(6)
                .allMatch(Finding::isOk);
        assertThat(finding(report, "ports").detail())
                .contains("mlx5_bond_1:1 MTU 4096, addresses 1");
        assertThat(finding(report, "GPU memory").detail()).contains(OTHER + " by dma-buf");
        assertThat(ownWay(report).possible()).isTrue();
    }

    @Test
    void aCardThatKernelsCannotDriveStopsIt() {
        NicFacts.Trial none = NicFacts.Trial.none("kernels cannot drive this card");
        DoctorReport report =
                with(FixtureMachine.card(OTHER, List.of("no extended atomics"), none));
        assertStops(report, "cards");
        assertThat(finding(report, "cards").detail()).isEqualTo(OTHER + " no extended atomics");
    }

    @Test
    void aPortThatIsDownOrHasNoAddressStopsIt() {
        NicFacts good = FixtureMachine.cards().get(1);
        NicFacts down = withPort(good, new NicFacts.Port(OTHER + ":1", false, 4096, List.of("a")));
        assertStops(with(down), "ports");
        NicFacts nameless = withPort(good, new NicFacts.Port(OTHER + ":1", true, 4096, List.of()));
        assertThat(finding(with(nameless), "ports").detail())
                .isEqualTo(OTHER + ":1 has no address");
        NicFacts another = withPort(good, new NicFacts.Port(OTHER + ":2", false, 4096, List.of()));
        assertThat(finding(with(another), "ports").isOk()).as("of no GPU").isTrue();
    }

    private static NicFacts withPort(NicFacts card, NicFacts.Port port) {
        return new NicFacts(
                card.hca(),
                "",
                card.firmware(),
                card.maxQueuePairs(),
                card.maxQueuePairEntries(),
                false,
                List.of(),
                List.of(port),
                card.trial());
    }

    @Test
    void eitherWayToGpuMemoryWillDo() {
        DoctorReport oneWay = with(tried("none is made", "", "", ""));
        assertThat(finding(oneWay, "GPU memory").detail()).contains(OTHER + " by nvidia-peermem");
        assertThat(ownWay(oneWay).possible()).isTrue();
        DoctorReport neither = with(tried("none is made", "Bad address", "", ""));
        assertStops(neither, "GPU memory");
        assertThat(finding(neither, "GPU memory").detail())
                .isEqualTo(OTHER + " dma-buf: none is made; nvidia-peermem: Bad address");
    }

    /** It runs, but the CPU or its memory takes part. */
    @Test
    void whatIsOnlySlowerIsAWarning() {
        DoctorReport report = with(tried("", "", "no memory", "not mapped"));
        assertThat(finding(report, "queues").status()).isEqualTo(Finding.Status.WARN);
        assertThat(finding(report, "queues").detail()).contains(OTHER + " no memory");
        assertThat(finding(report, "doorbells").status()).isEqualTo(Finding.Status.WARN);
        assertThat(finding(report, "doorbells").cure()).contains("PeerMappingOverride=1");
        assertThat(ownWay(report).possible()).isTrue();
        DoctorReport inOrder = with(withPort(FixtureMachine.cards().get(1), port()));
        assertThat(finding(inOrder, "relaxed ordering").detail()).startsWith("not on " + OTHER);
    }

    private static NicFacts.Port port() {
        return FixtureMachine.cards().get(1).ports().getFirst();
    }

    @Test
    void withoutATrialTheReasonIsGiven() {
        NicFacts.Trial none = NicFacts.Trial.none("not asked for");
        List<NicFacts> cards =
                FixtureMachine.cards().stream()
                        .map(card -> FixtureMachine.card(card.hca(), List.of(), none))
                        .toList();
        DoctorReport report = machine.examine(FixtureMachine.gpus(true), cards);
        assertThat(finding(report, "GPU").detail()).isEqualTo("not tried: not asked for");
        assertThat(ownWay(report).possible()).isTrue();
    }

    /** The first is reported as a device; what the other lacks does not matter. */
    @Test
    void cardsThatAreNotOpenedOrServeNoGpuAreNotSpokenOf() {
        NicFacts good = FixtureMachine.cards().get(1);
        NicFacts idle =
                FixtureMachine.card("mlx5_9", List.of("no atomics"), NicFacts.Trial.none(""));
        NicFacts closed = NicFacts.unknown(FixtureMachine.cards().getFirst().hca(), "no access");
        DoctorReport report =
                machine.examine(FixtureMachine.gpus(true), List.of(closed, good, idle));
        assertThat(report.findings().stream().filter(f -> f.topic().equals("IBGDA")))
                .hasSize(6)
                .allMatch(Finding::isOk);
        assertThat(finding(report, "cards").detail())
                .isEqualTo(OTHER + " firmware " + good.firmware());
        assertThat(ownWay(report).detail()).isEqualTo("missing: network RDMA devices");
        DoctorReport without = machine.examine(FixtureMachine.gpus(true), List.of(closed));
        assertThat(without.findings()).noneMatch(f -> f.topic().equals("IBGDA"));
        assertThat(ownWay(without).possible()).isFalse();
    }
}

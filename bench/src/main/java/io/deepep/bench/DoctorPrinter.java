package io.deepep.bench;

import io.deepep.bench.run.Console;
import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.TextTable;
import io.deepep.doctor.DoctorReport;
import io.deepep.doctor.Finding;
import io.deepep.doctor.GpuFacts;
import io.deepep.doctor.HostFacts;
import io.deepep.doctor.NicFacts;
import io.deepep.doctor.Way;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The report as tables. */
record DoctorPrinter(Console console, DoctorReport report) {
    /** Writes them. */
    void print() {
        HostFacts host = report.host();
        console.line("%s, %s, %s", host.name(), host.system(), host.cpu());
        console.line("deepep %s, %s", host.deepep(), host.jvm());
        findings();
        gpus();
        nics();
        cards();
        matrices();
        ways();
        cures();
    }

    private void findings() {
        table(
                "Checks",
                report.findings(),
                new TextTable<Finding>()
                        .text("", Finding::topic)
                        .text("check", Finding::item)
                        .text("", finding -> finding.status().name().toLowerCase(Locale.ROOT))
                        .text("found", Finding::detail));
    }

    private void gpus() {
        table(
                "GPUs and the NICs that serve them",
                report.gpus(),
                new TextTable<DoctorReport.Gpu>()
                        .text("GPU", gpu -> "gpu" + gpu.index())
                        .text("PCI", DoctorReport.Gpu::pciAddress)
                        .text("name", DoctorReport.Gpu::name)
                        .right("NUMA", gpu -> node(gpu.numaNode()))
                        .text("NVSHMEM_HCA_LIST", gpu -> orDash(gpu.hcaList()))
                        .text("because", DoctorReport.Gpu::reason));
    }

    private void nics() {
        table(
                "NICs",
                report.nics(),
                new TextTable<DoctorReport.Nic>()
                        .text("port", DoctorReport.Nic::name)
                        .text("PCI", DoctorReport.Nic::pciAddress)
                        .text("link", DoctorReport.Nic::linkLayer)
                        .number("Gb/s", "%.0f", DoctorReport.Nic::gbps)
                        .right("NUMA", nic -> node(nic.numaNode()))
                        .text("bond", nic -> orDash(nic.bond()))
                        .text("serves", DoctorPrinter::serves));
    }

    private void cards() {
        table(
                "Network cards, as they describe themselves",
                report.cards(),
                new TextTable<NicFacts>()
                        .text("card", NicFacts::hca)
                        .text("firmware", card -> orDash(card.firmware()))
                        .right("queue pairs", card -> known(card, card.maxQueuePairs()))
                        .right("of entries", card -> known(card, card.maxQueuePairEntries()))
                        .text(
                                "relaxed ordering",
                                card -> known(card, yesNo(card.relaxedOrdering())))
                        .text("ports", DoctorPrinter::ports)
                        .text("tried with", card -> orDash(card.trial().gpu()))
                        .text("dma-buf", card -> tried(card, NicFacts.Trial::dmaBuf))
                        .text("nvidia-peermem", card -> tried(card, NicFacts.Trial::peerMem))
                        .text("queues on GPU", card -> tried(card, NicFacts.Trial::queues))
                        .text("GPU rings", card -> tried(card, NicFacts.Trial::doorbells)));
    }

    private static String ports(NicFacts card) {
        return card.ports().stream()
                .map(
                        port ->
                                "%s %s, MTU %d, addresses %d"
                                        .formatted(
                                                port.name(),
                                                port.active() ? "active" : "down",
                                                port.mtu(),
                                                port.gids().size()))
                .collect(Collectors.joining("; "));
    }

    /** What a card says that could be opened. */
    private static String known(NicFacts card, Object fact) {
        return card.problem().isEmpty() ? fact.toString() : "?";
    }

    private static String tried(NicFacts card, Function<NicFacts.Trial, String> problem) {
        return card.trial().gpu().isEmpty() ? "?" : yesNo(problem.apply(card.trial()).isEmpty());
    }

    private static String yesNo(boolean yes) {
        return yes ? "yes" : "no";
    }

    private static String orDash(String text) {
        return text.isEmpty() ? "-" : text;
    }

    private static String serves(DoctorReport.Nic nic) {
        return nic.servesGpus().isEmpty()
                ? "no GPU: left over"
                : String.join(", ", nic.servesGpus().stream().map(gpu -> "gpu" + gpu).toList());
    }

    private static String node(int numaNode) {
        return numaNode < 0 ? "?" : Integer.toString(numaNode);
    }

    private void matrices() {
        if (!report.nics().isEmpty()) {
            matrix(
                    "What lies between GPUs and NICs (as nvidia-smi topo -m)",
                    gpu -> "gpu" + gpu,
                    report.nics().stream().map(DoctorReport.Nic::name).toList(),
                    report.pciDistances());
        }
        GpuFacts cuda = report.cuda();
        List<String> names = cuda.gpus().stream().map(gpu -> "cuda:" + gpu.ordinal()).toList();
        if (cuda.gpus().size() > 1) {
            matrix("NVLinks", names::get, names, cuda.nvLinks());
            matrix(
                    "Copies from row to column, GB/s",
                    names::get,
                    names,
                    cuda.peerGigabytesPerSecond().stream().map(DoctorPrinter::rounded).toList());
        }
        if (!cuda.peerProblem().isEmpty()) {
            console.line("copies between GPUs were not measured: %s", cuda.peerProblem());
        }
    }

    private static List<String> rounded(List<Double> row) {
        return row.stream().map(speed -> Decimals.of("%.0f", speed)).toList();
    }

    private void matrix(
            String title,
            IntFunction<String> rowName,
            List<String> columns,
            List<? extends List<?>> rows) {
        TextTable<Integer> data = new TextTable<Integer>().text("", rowName::apply);
        for (int column = 0; column < columns.size(); column++) {
            int at = column;
            data.right(columns.get(at), row -> rows.get(row).get(at).toString());
        }
        List<Integer> indices = IntStream.range(0, rows.size()).boxed().toList();
        table(title, indices, data);
    }

    private void ways() {
        table(
                "What can run here",
                report.modes(),
                new TextTable<Way>()
                        .text("", Way::name)
                        .text("", way -> way.possible() ? "yes" : "no")
                        .text("", Way::detail));
    }

    /** One line each, not in a table: they are to be copied. */
    private void cures() {
        Map<String, List<Finding>> byCure =
                report.findings().stream()
                        .filter(finding -> !finding.cure().isEmpty())
                        .collect(
                                Collectors.groupingBy(
                                        Finding::cure, LinkedHashMap::new, Collectors.toList()));
        if (!byCure.isEmpty()) {
            console.line("%nWhat would help");
        }
        byCure.forEach(
                (cure, findings) -> {
                    for (Finding finding : findings) {
                        console.line(
                                "  %s %s: %s", finding.topic(), finding.item(), finding.detail());
                    }
                    console.line("      %s", cure);
                });
    }

    private <T> void table(String title, List<T> rows, TextTable<T> table) {
        if (!rows.isEmpty()) {
            console.line("%n%s", title);
            console.print(table.of(rows));
        }
    }
}

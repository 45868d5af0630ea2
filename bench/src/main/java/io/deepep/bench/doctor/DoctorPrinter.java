package io.deepep.bench.doctor;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.github.freva.asciitable.AsciiTable;
import com.github.freva.asciitable.Column;
import com.github.freva.asciitable.ColumnData;
import com.github.freva.asciitable.HorizontalAlign;
import com.github.freva.asciitable.OverflowBehaviour;
import io.deepep.bench.run.Console;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The report as tables for people and as JSON for programs. */
public final class DoctorPrinter {
    private static final int WIDEST_COLUMN = 70;
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    private final Console console;
    private final DoctorReport report;

    private DoctorPrinter(Console console, DoctorReport report) {
        this.console = console;
        this.report = report;
    }

    /** Writes JSON. */
    public static void writeJson(Console console, DoctorReport report) {
        try {
            console.out().println(JSON.writeValueAsString(report));
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException("the report cannot be written", impossible);
        }
    }

    /** Writes tables. */
    public static void print(Console console, DoctorReport report) {
        new DoctorPrinter(console, report).print();
    }

    private void print() {
        HostFacts host = report.host();
        console.line("%s, Linux %s, %s", host.name(), host.kernel(), host.cpu());
        console.line("deepep %s, %s", host.deepep(), host.jvm());
        findings();
        gpus();
        nics();
        matrices();
        modes();
        cures();
    }

    private void findings() {
        table(
                "Checks",
                report.findings(),
                List.of(
                        left("", Finding::topic),
                        left("check", Finding::item),
                        left("", finding -> finding.status().name().toLowerCase(Locale.ROOT)),
                        left("found", Finding::detail)));
    }

    private void gpus() {
        table(
                "GPUs and the NICs that serve them",
                report.gpus(),
                List.of(
                        left("GPU", gpu -> "gpu" + gpu.index()),
                        left("PCI", DoctorReport.Gpu::pciAddress),
                        left("name", DoctorReport.Gpu::name),
                        right("NUMA", gpu -> node(gpu.numaNode())),
                        left(
                                "NVSHMEM_HCA_LIST",
                                gpu -> gpu.hcaList().isEmpty() ? "-" : gpu.hcaList()),
                        left("because", DoctorReport.Gpu::reason)));
    }

    private void nics() {
        table(
                "NICs",
                report.nics(),
                List.of(
                        left("port", DoctorReport.Nic::name),
                        left("PCI", DoctorReport.Nic::pciAddress),
                        left("link", DoctorReport.Nic::linkLayer),
                        right("Gb/s", nic -> String.format(Locale.ROOT, "%.0f", nic.gbps())),
                        right("NUMA", nic -> node(nic.numaNode())),
                        left("bond", nic -> nic.bond().isEmpty() ? "-" : nic.bond()),
                        left("serves", DoctorPrinter::serves)));
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
        return row.stream().map(speed -> String.format(Locale.ROOT, "%.0f", speed)).toList();
    }

    private void matrix(
            String title,
            IntFunction<String> rowName,
            List<String> columns,
            List<? extends List<?>> rows) {
        List<ColumnData<Integer>> data = new ArrayList<>();
        data.add(left("", rowName::apply));
        for (int column = 0; column < columns.size(); column++) {
            int at = column;
            data.add(right(columns.get(at), row -> rows.get(row).get(at).toString()));
        }
        List<Integer> indices = IntStream.range(0, rows.size()).boxed().toList();
        table(title, indices, data);
    }

    private void modes() {
        table(
                "What can run here",
                report.modes(),
                List.of(
                        left("", Mode::name),
                        left("", mode -> mode.possible() ? "yes" : "no"),
                        left("", Mode::detail)));
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

    private <T> void table(String title, List<T> rows, List<ColumnData<T>> columns) {
        if (!rows.isEmpty()) {
            console.line("%n%s", title);
            console.out()
                    .println(
                            AsciiTable.getTable(
                                    AsciiTable.BASIC_ASCII_NO_DATA_SEPARATORS, rows, columns));
        }
    }

    private static <T> ColumnData<T> left(String header, Function<T, String> value) {
        return column(header, HorizontalAlign.LEFT, value);
    }

    private static <T> ColumnData<T> right(String header, Function<T, String> value) {
        return column(header, HorizontalAlign.RIGHT, value);
    }

    private static <T> ColumnData<T> column(
            String header, HorizontalAlign align, Function<T, String> value) {
        return new Column()
                .header(header)
                .dataAlign(align)
                .maxWidth(WIDEST_COLUMN, OverflowBehaviour.NEWLINE)
                .with(value);
    }
}

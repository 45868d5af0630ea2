package io.deepep.bench.measure;

import io.deepep.bench.run.Job;
import io.deepep.bench.run.UsageException;
import java.util.Collection;
import java.util.List;
import java.util.function.IntFunction;
import picocli.CommandLine.Option;

/** {@link ComparedOptions} of a command that measures several operations. */
public final class OperationOptions extends ComparedOptions {
    @Option(
            names = "--operations",
            paramLabel = "NAME",
            split = ",",
            description =
                    "Measures only these operations, by their names in the table; all are verified"
                            + " (default: all).")
    private List<String> operations;

    /** Whether all operations are measured. */
    public boolean isAll() {
        return operations == null;
    }

    /**
     * Checks the names.
     *
     * @throws UsageException with the first that is not among {@code known}
     */
    public void require(Collection<String> known) {
        if (isAll()) {
            return;
        }
        String there = "; there are " + String.join(", ", known);
        for (String name : operations) {
            if (!known.contains(name)) {
                throw new UsageException(
                        "--operations=" + name + " is not an operation of this mode" + there);
            }
        }
        if (operations.isEmpty()) {
            throw new UsageException("--operations names none" + there);
        }
    }

    /**
     * Measures these operations, one after the other.
     *
     * @param all makes the calls of each operation, by multiprocessors
     * @param sms numbers of multiprocessors to measure each with
     * @throws UsageException if {@code all} has none of them
     */
    public List<OperationRecord> measure(
            Meter meter, Job job, List<IntFunction<MeasuredCall>> all, List<Integer> sms) {
        List<OperationRecord> records =
                all.stream()
                        .flatMap(bySms -> sms.stream().map(bySms::apply))
                        .filter(call -> isAll() || operations.contains(call.subject().op()))
                        .map(call -> meter.measure(job, call, warmups(), repeats()))
                        .toList();
        if (records.isEmpty()) {
            throw new UsageException(
                    "--operations=%s: nothing to measure with these on the %s"
                            .formatted(String.join(",", operations), job.placement().describe()));
        }
        return records;
    }
}

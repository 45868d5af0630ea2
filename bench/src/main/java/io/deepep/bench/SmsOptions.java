package io.deepep.bench;

import io.deepep.Config;
import io.deepep.bench.run.UsageException;
import java.util.List;
import picocli.CommandLine.Option;

/**
 * How many multiprocessors operations use: each mode takes other numbers, and has other defaults.
 */
interface SmsOptions {
    int MOST = 1024;

    /** The given numbers; empty for the defaults. */
    List<Integer> numbers();

    /** Demands numbers that the mode takes. */
    default void validate() {
        for (int number : numbers()) {
            UsageException.requireIn("--sms", number, 1, MOST);
        }
    }

    /** Of normal mode. */
    final class Normal implements SmsOptions {
        @Option(
                names = "--sms",
                paramLabel = "N",
                split = ",",
                description =
                        "Multiprocessors per operation, an even number, or 1 on one node; half of it is"
                                + " the number of RDMA channels, on the host too. Of several numbers, each is measured, and"
                                + " checks run with the first (default: the library's default; on GPUs,"
                                + " it and others from 8 to 64 are measured).")
        private List<Integer> sms = List.of();

        @Override
        public List<Integer> numbers() {
            return sms;
        }

        @Override
        public void validate() {
            SmsOptions.super.validate();
            try {
                sms.forEach(Config.recommended(1)::withNumSms);
            } catch (IllegalArgumentException refused) {
                throw new UsageException("--sms: " + refused.getMessage());
            }
        }
    }

    /** Of low-latency mode. */
    final class LowLatency implements SmsOptions {
        @Option(
                names = "--sms",
                paramLabel = "N",
                split = ",",
                description =
                        "Multiprocessors of a timed call on a GPU, any number from 1; the host ignores it."
                                + " Of several numbers, bench measures each, and test-low-latency the"
                                + " first (default: bench measures 16, 32, 64 and 132, as far as each"
                                + " rank has them). Checks use the library's default.")
        private List<Integer> sms = List.of();

        @Override
        public List<Integer> numbers() {
            return sms;
        }
    }
}

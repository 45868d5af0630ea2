package io.deepep.buffer;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The conformance suites of the host backend with ranks in several processes. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostProcessConformanceTest {
    @TempDir private Path folder;

    @Test
    void normal() throws Exception {
        new ProcessSuites(folder).run(2, 1, HostNormalConformanceTest.class);
    }

    @Test
    void lowLatencyWithTwoThreadsInEachProcess() throws Exception {
        new ProcessSuites(folder).run(2, 2, HostLowLatencyConformanceTest.class);
    }

    @Tag("slow")
    @Test
    void normalWithFourProcesses() throws Exception {
        new ProcessSuites(folder).run(4, 1, HostNormalConformanceTest.class);
    }
}

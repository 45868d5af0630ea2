package io.deepep.cuda.ibgda;

import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** Device code compiled for the host: bits and protocol, without a GPU. */
class IbgdaOnHostTest extends IbgdaConformance {
    @TempDir static Path folder;
    private static Path library;

    @BeforeAll
    static void compile() throws Exception {
        library = HostNicDevice.compile(folder);
    }

    @Override
    NicDevice openDevice() {
        return new HostNicDevice(library);
    }
}

package io.deepep.bench;

import io.deepep.Network;
import io.deepep.bench.run.RankSource;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * {@link CudaLowLatencySoakTest} over cards that GPUs drive, where {@code
 * -Ddeepep.backends=cuda-ibgda} names them: real ones, or the card in software, which delays
 * entries, stops queues and takes them in any order as it is told.
 */
@Tag("manyCalls")
class IbgdaLowLatencySoakTest {
    @ParameterizedTest
    @CsvSource({"2, 2, 32, 384, 4", "2, 4, 64, 256, 4"})
    void everyRowAndSumIsRight(int nodes, int ranksPerNode, int experts, int hidden, int topk) {
        Assumptions.assumeTrue(
                System.getProperty("deepep.backends", "").contains("cuda-ibgda"),
                "needs network cards: -Ddeepep.backends=cuda-ibgda");
        CudaLowLatencySoakTest.requireCuda();
        RankSource ranks = RankSource.inProcess(nodes * ranksPerNode);
        CudaLowLatencySoakTest.soak(
                Network.ibgda(), ranks, ranksPerNode, experts, hidden, topk, Long.MAX_VALUE);
    }
}

package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.rdma.RdmaDevice;
import io.deepep.testkit.conformance.RequiredBackends;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A GPU and the card in software, tried as the doctor does. */
class IbgdaTrialTest {
    private SoftwareCard card;

    @BeforeEach
    void withoutFaults() {
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
        card = SoftwareCard.require();
        SoftwareCard.requireReachOfGpu(true);
        card.faults("");
    }

    @AfterEach
    void nothingIsLeft() {
        if (card != null) {
            card.faults("");
            assertThat(card.numObjects()).isZero();
        }
    }

    private static IbgdaTrial attempt() {
        try (RdmaDevice device = RdmaDevice.open("mlx5_0")) {
            assertThat(device.facts().missing()).isEmpty();
            return IbgdaTrial.of(CudaContext.shared(CudaDevice.of(0)), device);
        }
    }

    @Test
    void whatWorksHasNothingToSay() {
        IbgdaTrial trial = attempt();
        assertThat(trial.peerMem()).isEmpty();
        assertThat(trial.queues()).isEmpty();
        assertThat(trial.doorbells()).isEmpty();
    }

    @Test
    void oneRegisterForAllQueuesWorks() {
        card.faults("one-register");
        assertThat(attempt().doorbells()).isEmpty();
    }

    /** Whichever call fails: its part says so, and the trial goes on. */
    @Test
    void whatIsRefusedSaysWhy() {
        List<String> refusals = new ArrayList<>();
        for (int before = 2; before < 8; before++) {
            card.faults("refuse " + before); // after the context and the domain
            IbgdaTrial trial = attempt();
            refusals.addAll(
                    Stream.of(trial.dmaBuf(), trial.peerMem(), trial.queues(), trial.doorbells())
                            .filter(text -> text.contains("Cannot allocate memory"))
                            .toList());
        }
        assertThat(refusals)
                .anyMatch(text -> text.startsWith("ibv_reg_mr_iova2 failed on mlx5_0"))
                .anyMatch(text -> text.startsWith("mlx5dv_devx_umem_reg"));
    }
}

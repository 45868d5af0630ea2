package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.cuda.rdma.Endpoint;
import io.deepep.cuda.rdma.Gid;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class CardAddressTest {
    private static final Random RANDOM = new Random();

    private static CardAddress of(List<List<Integer>> groups) {
        List<CardAddress.Port> ports =
                IntStream.range(0, RANDOM.nextInt(3)).mapToObj(_ -> port()).toList();
        return new CardAddress(RANDOM.nextLong(), ports, groups);
    }

    private static CardAddress.Port port() {
        Gid gid = new Gid(RANDOM.nextInt(256), RANDOM.nextLong(), RANDOM.nextLong());
        Endpoint endpoint =
                new Endpoint(
                        RANDOM.nextBoolean(),
                        RANDOM.nextInt(1 << 16),
                        RANDOM.nextInt(1, 6),
                        gid,
                        RANDOM.nextBoolean());
        return new CardAddress.Port(endpoint, RANDOM.nextInt());
    }

    @Test
    void anyNumbersArriveAsTheyWere() {
        for (int i = 0; i < 1000; i++) {
            List<List<Integer>> groups =
                    IntStream.range(0, RANDOM.nextInt(3)).mapToObj(_ -> numbers()).toList();
            CardAddress address = of(groups);
            assertThat(CardAddress.decode(address.encode())).isEqualTo(address);
        }
    }

    /** Runs that rise, fall or stand still, and numbers anywhere between. */
    private static List<Integer> numbers() {
        return IntStream.range(0, RANDOM.nextInt(6))
                .boxed()
                .flatMap(
                        _ -> {
                            int first = RANDOM.nextInt(1 << 24);
                            int step = RANDOM.nextInt(-1, 3);
                            return IntStream.range(0, RANDOM.nextInt(5))
                                    .mapToObj(k -> first + step * k);
                        })
                .toList();
    }

    @Test
    void numbersInARowTakeTheRoomOfOne() {
        List<Integer> row = IntStream.range(1000, 6000).boxed().toList();
        int one = withoutPorts(Collections.nCopies(1, 1000)).encode().length();
        assertThat(withoutPorts(row).encode()).hasSize(one);
    }

    private static CardAddress withoutPorts(List<Integer> group) {
        return new CardAddress(0, List.of(), List.of(group));
    }
}

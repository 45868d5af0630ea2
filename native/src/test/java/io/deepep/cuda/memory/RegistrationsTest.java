package io.deepep.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RegistrationsTest {
    private static final long ADDRESS = 4096;
    private static final long OTHER = 8192;

    /** Takes an address once, as the driver does. */
    private static final class Driver implements Registrations.Driver {
        final List<Long> registered = new ArrayList<>();
        boolean hasNoAddress;

        @Override
        public void register(long address, long numBytes) {
            assertThat(registered).doesNotContain(address);
            registered.add(address);
        }

        @Override
        public long deviceAddress(long address) {
            if (hasNoAddress) {
                throw new IllegalStateException("no address");
            }
            return address + 1;
        }

        @Override
        public void unregister(long address) {
            assertThat(registered.remove(address)).isTrue();
        }
    }

    private final Driver driver = new Driver();
    private final Registrations registrations = new Registrations(driver);

    @Test
    void anAddressIsRegisteredOnceUntilTheLastUserCloses() {
        assertThat(registrations.open(ADDRESS, 8)).isEqualTo(ADDRESS + 1);
        assertThat(registrations.open(ADDRESS, 8)).isEqualTo(ADDRESS + 1);
        assertThat(registrations.open(OTHER, 8)).isEqualTo(OTHER + 1);
        registrations.close(ADDRESS);
        assertThat(driver.registered).containsExactly(ADDRESS, OTHER);
        registrations.close(ADDRESS);
        assertThat(driver.registered).containsExactly(OTHER);
        assertThat(registrations.open(ADDRESS, 8)).isEqualTo(ADDRESS + 1);
    }

    /** Whoever has it keeps it. */
    @Test
    void whatHasNoAddressForKernelsIsGivenBack() {
        registrations.open(OTHER, 8);
        driver.hasNoAddress = true;
        assertThatThrownBy(() -> registrations.open(ADDRESS, 8)).hasMessage("no address");
        assertThatThrownBy(() -> registrations.open(OTHER, 8)).hasMessage("no address");
        assertThat(driver.registered).containsExactly(OTHER);
        registrations.close(OTHER);
        assertThat(driver.registered).isEmpty();
    }
}

package io.deepep.bench;

import io.deepep.bench.measure.Build;
import picocli.CommandLine.IVersionProvider;

/** What {@code deepep --version} prints. */
final class VersionText implements IVersionProvider {
    @Override
    public String[] getVersion() {
        Build build = Build.current();
        return new String[] {
            "deepep " + build.version() + " (" + build.commit() + ")", build.jvm()
        };
    }
}

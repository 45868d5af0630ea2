package io.deepep.testkit;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** What a class logs until this is closed, in all threads. */
public final class LogMessages implements AutoCloseable {
    private final List<String> messages = new CopyOnWriteArrayList<>();
    private final Handler handler = new Listener();
    private final Logger logger;

    /** Begins to listen. */
    public LogMessages(Class<?> ofClass) {
        logger = Logger.getLogger(ofClass.getName());
        logger.addHandler(handler);
    }

    /** In the order in which they came. */
    public List<String> messages() {
        return messages;
    }

    @Override
    public void close() {
        logger.removeHandler(handler);
    }

    private final class Listener extends Handler {
        private final SimpleFormatter formatter = new SimpleFormatter();

        @Override
        public void publish(LogRecord logged) {
            messages.add(formatter.formatMessage(logged));
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }
}

package io.deepep;

/** The event of work that is over before anybody can ask. */
enum CompletedEvent implements Event {
    INSTANCE;

    @Override
    public boolean isDone() {
        return true;
    }

    @Override
    public void synchronize() {}
}

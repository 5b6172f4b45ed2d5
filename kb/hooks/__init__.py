"""Explains failures inside other Python programs: uncaught exceptions, log records, notebook cells, failed tests.

Every hook is opt-in. A failure goes in, a few lines about the known issue (or those that are likely) come out, and
nothing for an unknown one or for one about software that is not in this program.
Whatever goes wrong in kb leaves one debug line on the logger "kb"; the program runs as it would without kb.

    excepthook      `kb.install_excepthook`: below an uncaught exception, in any thread
    logs            `kb.KbHandler`: a logging handler
    ipython         `%load_ext kb`: below a failed cell, and the magic `%kb`
    pytest_plugin   `pytest --kb`: a section in the report of a failed test
    guard           asks the base in time, without harm to the program, and limits the rate of hints
    hint            an exception as a query, the answer as the lines to print
"""

__all__: list[str] = []

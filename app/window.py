"""The main window: builds the parts, lays them out, and connects them in one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QIcon, QKeySequence, QShortcut
from PySide6.QtWidgets import QMainWindow

from app.chat.column import COLUMN_PIXELS
from app.chat.composer import Composer
from app.chat.controller import ChatController
from app.chat.legend import Legend
from app.chat.transcript import Transcript
from app.choices import Choices
from app.errors import Banner
from app.frame import ThreeColumns, centred, make_room_for_frame, place_of, put, stacked
from app.header import Header
from app.lab.drafter_list import DrafterRow
from app.lab.panel import LabPanel
from app.model_manager.loading import TargetLoader
from app.model_manager.picker import DraftModelPicker, TargetPicker
from app.paths import resource
from app.sidebar import Sidebar
from app.theme import palette, style_sheet

if TYPE_CHECKING:
    from PySide6.QtGui import QCloseEvent, QKeyEvent, QMoveEvent, QResizeEvent, QShowEvent

    from app.engine_host import LoadedTarget
    from app.engine_thread import EngineThread
    from app.settings import SettingsStore
    from app.theme import Theme

_LEAST_WIDTH, _LEAST_HEIGHT = 420, 480
_FRAMED_MS = 100  # A window manager puts its frame round a window some time after it is shown.


class MainWindow(QMainWindow):
    """Everything the user sees. `open_target` loads a target once the window is shown."""

    closed = Signal()

    def __init__(self, engine: EngineThread, store: SettingsStore, theme: Theme) -> None:
        super().__init__()
        self._engine = engine
        self._choices = Choices(store, self)
        self._target: LoadedTarget | None = None

        # The parts that work
        self.chat = ChatController(engine, self)
        self.loader = TargetLoader(engine, self)

        # The parts that show
        self.sidebar = Sidebar()
        self.header = Header(theme)
        self.banner = Banner()
        self.transcript = Transcript(theme)
        self.legend = Legend(theme)
        self.composer = Composer(theme)
        self.panel = LabPanel(theme)
        self.target_picker = TargetPicker(self)
        self.draft_picker = DraftModelPicker(self)

        self._assemble()
        self._connect()
        self.set_theme(theme)
        self._restore()

    def open_target(self, target: str | None = None, drafter: str | None = None) -> None:
        """Load a target, by default the one used last."""
        if drafter is not None:
            self._choices.change(drafter=drafter)
        self.loader.load(target or self._choices.now.target, self._choices.now.device)

    def set_theme(self, theme: Theme) -> None:
        """Take on a theme, while running if need be."""
        self.setPalette(palette(theme))
        self.setStyleSheet(style_sheet(theme))
        for part in (self.header, self.transcript, self.legend, self.composer, self.panel):
            part.set_theme(theme)

    async def finish(self) -> None:
        """End what is going on, so that the engine thread can be joined."""
        await self.loader.finish()
        await self.chat.finish()

    def _assemble(self) -> None:
        self.setWindowTitle("Draftlight")
        self.setWindowIcon(QIcon(str(resource("icons", "draftlight.svg"))))
        self.setMinimumSize(_LEAST_WIDTH, _LEAST_HEIGHT)
        notices = centred("notices", self.banner, most=COLUMN_PIXELS)
        foot = stacked("foot", self.legend, self.composer)
        middle = stacked(
            "middle", self.header, notices, self.transcript, foot, stretched=self.transcript
        )
        self.columns = ThreeColumns(self.sidebar, middle, self.panel)
        self.setCentralWidget(self.columns)

    def _connect(self) -> None:
        chat, loader, panel = self.chat, self.loader, self.panel

        # What the user asks for
        self.composer.submitted.connect(self._submit)
        self.composer.stop_requested.connect(chat.stop)
        self.composer.text_edited.connect(chat.count_context)
        self.transcript.regenerate_requested.connect(self._regenerate)
        self.transcript.copy_requested.connect(lambda t: QGuiApplication.clipboard().setText(t))
        self.banner.dismissed.connect(self.composer.setFocus)
        QShortcut(QKeySequence(QKeySequence.StandardKey.New), self).activated.connect(chat.new_chat)
        self.sidebar.new_chat_requested.connect(chat.new_chat)
        self.header.new_chat_requested.connect(chat.new_chat)
        self.legend.colours_toggled.connect(self._show_colours)
        self.header.colours_toggled.connect(self._show_colours)
        self.header.panel_toggled.connect(self._show_panel)
        self.columns.left_shown.connect(lambda shown: self.header.set_new_chat(not shown))
        self.columns.right_shown.connect(self.header.set_panel)
        panel.drafters.drafter_chosen.connect(chat.swap)
        panel.drafters.draft_file_requested.connect(self.draft_picker.ask)
        panel.drafters.draft_length_changed.connect(chat.set_draft_length)
        panel.drafters.tree_nodes_changed.connect(chat.set_tree_nodes)
        self.draft_picker.spec_chosen.connect(chat.swap)

        # What becomes of a prompt
        chat.busy_changed.connect(self.composer.set_busy)
        chat.busy_changed.connect(self.transcript.set_busy)
        chat.user_turn_added.connect(self.banner.clear)
        chat.user_turn_added.connect(self.transcript.add_user)
        chat.reply_begun.connect(self.banner.clear)
        chat.reply_begun.connect(self.transcript.begin_reply)
        chat.reply_begun.connect(self.legend.reset)
        chat.events_arrived.connect(self.transcript.apply)
        chat.events_arrived.connect(self.legend.apply)
        chat.events_arrived.connect(panel.apply)
        chat.prompt_read.connect(self.transcript.show_prompt_read)
        chat.context_changed.connect(self._show_context)
        chat.outlook_changed.connect(panel.set_outlook)
        chat.reply_failed.connect(self.transcript.fail_reply)
        chat.reply_withdrawn.connect(self.transcript.drop_last_reply)
        chat.user_turn_withdrawn.connect(self.transcript.drop_last_user)
        chat.prompt_returned.connect(self.composer.restore)
        chat.failed.connect(self.banner.show_failure)
        chat.chat_cleared.connect(self._clear)
        chat.swap_started.connect(self._show_swap)
        chat.drafter_changed.connect(self._name_target)
        chat.drafter_changed.connect(panel.drafters.select)
        chat.drafter_measured.connect(panel.drafters.apply_measure)

        # Which target answers
        self.header.picker_requested.connect(self.target_picker.popup)
        self.header.cancel_requested.connect(loader.cancel)
        self.header.cancel_requested.connect(chat.cancel_swap)
        self.target_picker.target_chosen.connect(self.open_target)
        self.target_picker.device_chosen.connect(self._use_device)
        loader.started.connect(self._loading_started)
        loader.progressed.connect(self.header.show_loading)
        loader.loaded.connect(self._loading_succeeded)
        loader.failed.connect(self.banner.show_failure)
        loader.ended.connect(self._show_target)

        # What is remembered
        panel.drafters.draft_length_changed.connect(lambda n: self._choices.change(draft_length=n))
        panel.drafters.tree_nodes_changed.connect(lambda n: self._choices.change(tree_nodes=n))
        chat.drafter_changed.connect(lambda spec: self._choices.change(drafter=spec))
        panel.sampling.changed.connect(self._note_sampling)
        self._choices.due.connect(self._remember)
        self._choices.refused.connect(self.banner.show_note)

    def _restore(self) -> None:
        settings = self._choices.now
        put(self, settings.geometry)
        if settings.maximised:
            self.setWindowState(Qt.WindowState.WindowMaximized)
        self.panel.restore(settings)
        self._note_sampling()
        self._show_colours(settings.colours)
        self._show_panel(settings.panel)
        self.composer.set_ready(False, "Loading the model…")

    def _submit(self, text: str) -> None:
        sampling = self.panel.sampling
        self.chat.submit(text, sampling.next_params(), sampling.system_prompt())

    def _regenerate(self, same_seed: bool) -> None:
        sampling = self.panel.sampling
        params = sampling.params(self.chat.seed) if same_seed else sampling.fresh_params()
        self.chat.regenerate(params, sampling.system_prompt())
        self.composer.setFocus()  # The button that asked goes with the reply it stood under.

    def _clear(self) -> None:
        self.transcript.clear()
        self.legend.reset()
        self.panel.reset()
        self.banner.clear()
        self.composer.setFocus()

    def _show_colours(self, shown: bool) -> None:
        self._choices.change(colours=shown)
        self.header.set_colours(shown)
        self.legend.setChecked(shown)
        self.transcript.set_colours(shown)

    def _show_panel(self, shown: bool) -> None:
        self._choices.change(panel=shown)
        self.columns.want_right(shown)

    def _show_context(self, tokens: int) -> None:
        if self._target is not None:
            self.composer.set_context(tokens, self._target.context_length)

    def _note_sampling(self) -> None:
        self._choices.note_change()
        self.transcript.set_sampled(not self.panel.sampling.params().sampling.is_greedy)

    def _use_device(self, device: str) -> None:
        self._choices.change(device=device)
        self.open_target()

    def _loading_started(self) -> None:
        self.chat.stop()
        self.banner.clear()
        self.header.show_loading("Loading", None)
        self.composer.set_ready(False, "Loading the model…")
        self.transcript.set_refusal("Wait until the model is loaded, or cancel that")

    def _loading_succeeded(self, target: LoadedTarget) -> None:
        recent = self._choices.now.with_recent(target.source)
        self._target = target
        self._choices.change(target=target.source, recent=recent)
        self.target_picker.set_choices(target, self._choices.now.device, recent)
        self.panel.drafters.set_choices([DrafterRow.of(choice) for choice in target.choices])
        self.panel.reset()
        self.chat.set_draft_length(self._choices.now.draft_length)
        self.chat.set_tree_nodes(self._choices.now.tree_nodes)
        self.chat.swap(target.usable_drafter(self._choices.now.drafter))
        self.chat.count_context(self.composer.text())
        if target.notes:
            self.banner.show_note(" ".join(target.notes))

    def _show_target(self) -> None:
        """Show the target there is, if any, after a load that succeeded, failed or was given up."""
        target = self._target
        if target is None:
            self.header.show_no_target()
            self.composer.set_ready(False, "Choose a model first")
            return
        self._name_target()
        self.transcript.set_refusal("")
        self.composer.set_ready(True, "Ask anything…")
        self.composer.setFocus()

    def _name_target(self) -> None:
        if self._target is not None:
            exact = self._target.bit_exact
            self.header.show_target(self._target.name, self._target.place, bit_exact=exact)

    def _show_swap(self, spec: str) -> None:
        if ":" in spec:  # A model of its own, which takes a while to load.
            self.header.show_loading("Loading the draft model", None)

    def _remember(self) -> None:
        self._choices.save(
            maximised=self.isMaximized(),
            drafters=self.panel.drafters.kept,
            sampling=self.panel.sampling.values(),
            geometry=self._choices.now.geometry if self.isMaximized() else place_of(self),
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc ends the reply wherever the focus is."""
        if event.key() == Qt.Key.Key_Escape:
            self.chat.stop()
        else:
            super().keyPressEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        """With its frame the window may be larger than the screen."""
        super().showEvent(event)
        if not event.spontaneous():
            self.composer.setFocus()  # Else the first button gets it, and Space presses that.
            QTimer.singleShot(_FRAMED_MS, self, lambda: make_room_for_frame(self))

    def moveEvent(self, event: QMoveEvent) -> None:
        """Remember the place."""
        self._choices.note_change()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Remember the size."""
        super().resizeEvent(event)
        self._choices.note_change()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember everything and let the reply end; whoever runs the app does the rest."""
        self._remember()
        self.chat.stop()
        self.closed.emit()
        super().closeEvent(event)

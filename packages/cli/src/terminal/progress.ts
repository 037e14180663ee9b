import { bytesText, durationText, shareText } from '../report/formats.ts'
import type { Terminal } from './terminal.ts'

const width = 30
/** Time (ms) between two updates of the bar. */
const pictureMs = 100

/** A progress bar on a terminal; nothing in a pipe. */
export class Progress {
  readonly #terminal: Terminal
  readonly #isShown: boolean
  #shownMs = 0
  readonly #startedMs = performance.now()

  constructor(terminal: Terminal) {
    this.#terminal = terminal
    this.#isShown = terminal.stderr.isTTY === true
  }

  /** @param all `undefined` if the total is unknown */
  show(done: number, all: number | undefined): void {
    // The clock of the process may follow the log.
    const nowMs = performance.now()
    if (!this.#isShown || nowMs - this.#shownMs < pictureMs) return
    this.#shownMs = nowMs
    const share = all ? Math.min(1, done / all) : 0
    const leftMs = (nowMs - this.#startedMs) * (1 / share - 1)
    const left = `${durationText(Math.ceil(leftMs / 1_000) * 1_000)} left`
    const picture =
      all && share > 0
        ? `${barOf(share, width).padEnd(width)} ${shareText(share, 1)} of ${bytesText(all)}, ${left}`
        : bytesText(done)
    this.#terminal.stderr.write(`\r\u001b[2K${picture}`)
  }

  end(): void {
    if (this.#isShown && this.#shownMs > 0) this.#terminal.stderr.write('\r\u001b[2K')
  }
}

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** A bar of up to `width` characters, in eighths. A share above zero is always visible. */
export function barOf(share: number, width: number): string {
  const parts = Math.round(Math.min(1, Math.max(0, share)) * width * 8)
  const seen = share > 0 ? Math.max(1, parts) : 0
  return '█'.repeat(Math.floor(seen / 8)) + (eighths[seen % 8] ?? '')
}

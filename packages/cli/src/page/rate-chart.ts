import UPlot from 'uplot'
import { countText, durationText } from '../report/formats.ts'

/** Rates, ascending, each with the number of clients that reach it. */
export type Distribution = readonly (readonly [rate: number, clients: number])[]

/** Draws how many clients exceed each rate, and where a limit stands. */
export class RateChart {
  readonly #box: HTMLElement
  #plot: UPlot | undefined
  #data: Distribution = []
  #windowMs = 0
  #limit = 1

  constructor(box: HTMLElement) {
    this.#box = box
    new ResizeObserver(() => {
      this.#plot?.setSize({ width: box.clientWidth, height })
    }).observe(box)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw())
  }

  /** Shows the rates of another window. */
  show(data: Distribution, windowMs: number): void {
    this.#data = data
    this.#windowMs = windowMs
    this.#draw()
  }

  /** Moves the limit. */
  set limit(limit: number) {
    this.#limit = limit
    this.#plot?.setData(this.#series())
  }

  #draw(): void {
    this.#plot?.destroy()
    this.#plot = undefined
    const maxRate = this.#data.at(-1)?.[0] ?? 0
    if (maxRate === 0) return
    const clients = this.#data.reduce((sum, [, each]) => sum + each, 0)
    const options = this.#options(maxRate, clients)
    this.#plot = new UPlot(options, this.#series(), this.#box)
  }

  /** The clients at or above each rate: all of them, and those above the limit again. */
  #series(): UPlot.AlignedData {
    const rates: number[] = []
    const all: number[] = []
    const caught: (number | null)[] = []
    let left = this.#data.reduce((sum, [, clients]) => sum + clients, 0)
    for (const [rate, clients] of this.#data) {
      rates.push(rate)
      all.push(left)
      caught.push(rate > this.#limit ? left : null)
      left -= clients
    }
    return [rates, all, caught]
  }

  #options(maxRate: number, clients: number): UPlot.Options {
    const colour = colours(this.#box)
    const font = '11px system-ui, sans-serif'
    const axis: UPlot.Axis = {
      ...{ font, labelFont: font, labelSize: 16 },
      stroke: colour('muted'),
      grid: { stroke: colour('line'), width: 1 },
      ticks: { show: false },
      values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : countText(tick))),
    }
    const { stepped } = UPlot.paths
    const line = (tone: string, label: string): UPlot.Series => ({
      label,
      stroke: colour(tone),
      fill: colour(tone, 0.16),
      width: 1.75,
      points: { show: this.#data.length < 3 },
      ...(stepped && { paths: stepped({ align: -1 }) }),
    })
    return {
      width: this.#box.clientWidth,
      height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      padding: [8, 12, 0, 0],
      scales: {
        x: { time: false, distr: 3, range: [0.9, Math.max(2, maxRate * 1.3)] },
        y: { distr: 3, range: [0.8, Math.max(2, clients * 1.3)] },
      },
      axes: [
        { ...axis, size: 44, label: `requests in ${durationText(this.#windowMs)}` },
        { ...axis, size: 60, label: 'clients' },
      ],
      series: [{}, line('accent', 'clients'), line('deny', 'caught')],
      hooks: { draw: [(plot) => this.#drawLimit(plot, colour('deny'))] },
    }
  }

  #drawLimit(plot: UPlot, stroke: string): void {
    const x = Math.round(plot.valToPos(Math.max(0.9, this.#limit), 'x', true))
    const { left, top, width, height } = plot.bbox
    if (x < left || x > left + width) return
    const { ctx } = plot
    ctx.save()
    ctx.strokeStyle = stroke
    ctx.lineWidth = 2 * devicePixelRatio
    ctx.beginPath()
    ctx.moveTo(x, top)
    ctx.lineTo(x, top + height)
    ctx.stroke()
    ctx.restore()
  }
}

const height = 260

/** Reads colours as the scheme has them: a canvas knows no variables of CSS. */
function colours(box: HTMLElement): (tone: string, alpha?: number) => string {
  const probe = document.createElement('span')
  box.append(probe)
  const style = getComputedStyle(probe)
  // The plot asks for all colours before the probe is taken away.
  queueMicrotask(() => probe.remove())
  return (tone, alpha) => {
    probe.style.color = `var(--${tone})`
    const { color } = style
    return alpha === undefined ? color : color.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`)
  }
}

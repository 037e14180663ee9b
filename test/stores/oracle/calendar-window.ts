import type { CalendarWindow } from '@sluice/core'

const minuteMs = 60_000
const dayMs = 86_400_000

/** Longer than any window and the one before it. */
const spanMs = { day: 3 * dayMs, week: 16 * dayMs, month: 65 * dayMs }

const found = new Map<string, { start: number; end: number }[]>()

/**
 * The window of a calendar that a time lies in, by reading the clock on the wall every few minutes: a window begins when its date is shown
 * for the first time.
 */
export function calendarWindow(
  calendar: CalendarWindow,
  now: number,
): { start: number; end: number } {
  const { every, zone } = calendar
  const name = `${every} ${zone}`
  const known = found.get(name) ?? []
  const before = known.find(({ start, end }) => start <= now && now < end)
  if (before) return before
  // St. John's changed its clock a minute after midnight.
  const stepMs = zone === 'America/St_Johns' ? minuteMs : 15 * minuteMs
  const dateOf = readerOf(calendar)
  let time = Math.floor((now - spanMs[every]) / stepMs) * stepMs
  let start = Number.NaN
  for (let latest = dateOf(time); ; time += stepMs) {
    const date = dateOf(time)
    if (date <= latest) continue
    latest = date
    if (time > now) break
    start = time
  }
  const window = { start, end: time }
  found.set(name, [...known, window])
  return window
}

/** Returns what a calendar on the wall shows: the day, the Monday of the week, or the month. */
function readerOf({ every, zone }: CalendarWindow): (time: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' })
  return (time) => {
    const day = format.format(time)
    if (every === 'day') return day
    if (every === 'month') return day.slice(0, 7)
    let monday = Date.parse(day)
    while (new Date(monday).getUTCDay() !== 1) monday -= dayMs
    return new Date(monday).toISOString().slice(0, 10)
  }
}

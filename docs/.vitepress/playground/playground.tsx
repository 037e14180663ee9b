import { render } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { LaneChart, type Span } from './lane-chart.tsx'
import {
  type Arrival,
  algorithms,
  answerOf,
  type Lane,
  type Run,
  secondsText,
  simulate,
} from './simulate.ts'
import { frameworks, snippet } from './snippets.ts'
import {
  attack,
  linkOf,
  maxLanes,
  readTraffic,
  type Scene,
  sceneOf,
  scenes,
  timesText,
} from './traffic.ts'

const none: readonly Arrival[] = []
const maxFileBytes = 50_000_000
/** Of the whole traffic, when it is played. */
const playMs = 6_000
const slots = 40
const maxDrawn = 10

/** Draws the playground into a box; as the hero, without the parts that change it. */
export function mount(box: Element, isHero: boolean): () => void {
  render(<Playground isHero={isHero} />, box)
  return () => render(null, box)
}

function Playground({ isHero }: { isHero: boolean }) {
  const [scene, setScene] = useState<Scene>(() => (isHero ? attack : sceneOf(location.hash)))
  const [log, setLog] = useState<{ name: string; text: string }>()
  const [client, setClient] = useState('')
  const { traffic: all, fault } = useTraffic(log?.text ?? scene.times)
  const traffic = useMemo(
    () => (client === '' ? all : all.filter(({ key }) => key === client)),
    [all, client],
  )
  const runs = useRuns(scene.lanes, traffic)
  const isLog = log !== undefined || traffic.some(({ key }) => key !== 'client')
  const span = spanOf(traffic, isLog)
  const [chosen, setCursor] = useState(Number.MAX_SAFE_INTEGER)
  const cursor = Math.max(0, Math.min(chosen, traffic.length - 1))
  const cursorMs = traffic[cursor]?.atMs ?? span.fromMs
  const [isPlaying, setPlaying] = usePlay(traffic, span, setCursor)
  const change = (index: number, lane: Lane | undefined) => {
    const lanes = scene.lanes.flatMap((each, place) =>
      place !== index ? [each] : lane ? [lane] : [],
    )
    setScene({ ...scene, lanes })
  }
  const setTimes = (times: string) => {
    setScene({ ...scene, times })
    setLog(undefined)
    setClient('')
    setPlaying(false)
  }
  const load = async (file: File | undefined) => {
    if (!file) return
    const isLarge = file.size > maxFileBytes
    setClient('')
    // Not a log: the message of the reader says so.
    setLog({ name: file.name, text: isLarge ? 'larger than 50 MB' : await file.text() })
  }
  const moment = `request ${cursor + 1} of ${traffic.length}, at ${secondsText(cursorMs - span.fromMs)}`
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a file can be chosen by the field too.
    <div
      class="playground"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        if (!isHero) load(event.dataTransfer?.files[0])
      }}
    >
      {!isHero && (
        <section class="panel" aria-label="Traffic">
          <div class="row">
            <label>
              Example{' '}
              <select onChange={({ currentTarget }) => setTimes(currentTarget.value)}>
                {Object.entries(scenes).map(([name, times]) => (
                  <option key={name} value={times}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <label>
              Access log (stays in your browser){' '}
              <input type="file" onChange={({ currentTarget }) => load(currentTarget.files?.[0])} />
            </label>
            {isLog && <Clients {...{ all, client, setClient }} />}
          </div>
          <label>
            Times of requests in seconds, or lines of a log
            <textarea
              {...{ rows: 3, spellcheck: false, value: log ? `(${log.name})` : scene.times }}
              onInput={({ currentTarget }) => setTimes(currentTarget.value)}
            />
          </label>
          {!isLog && <Pad {...{ traffic, span, setTimes }} />}
        </section>
      )}
      {fault !== undefined && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      <div class="lanes">
        {scene.lanes.map((lane, index) => (
          <LaneView
            key={index}
            {...{ lane, traffic, span, cursor, run: runs[index], isHero }}
            change={(changed) => change(index, changed)}
            canRemove={scene.lanes.length > 1}
          />
        ))}
      </div>
      <section class="row" aria-label="Requests one by one">
        <button type="button" onClick={() => setPlaying(!isPlaying)}>
          {isPlaying ? 'Pause' : 'Play'}
        </button>
        <input
          {...{ type: 'range', min: 0, max: Math.max(0, traffic.length - 1) }}
          {...{ value: cursor, 'aria-label': 'Request', 'aria-valuetext': moment }}
          onInput={({ currentTarget }) => {
            setPlaying(false)
            setCursor(Number(currentTarget.value))
          }}
        />
        <span class="moment">{moment}</span>
        {!isHero && scene.lanes.length < maxLanes && (
          <button
            type="button"
            onClick={() =>
              setScene({ ...scene, lanes: [...scene.lanes, ...scene.lanes.slice(-1)] })
            }
          >
            Add a policy
          </button>
        )}
        {!isHero && <Share scene={scene} isLog={isLog} />}
      </section>
      {!isHero && <Code lanes={scene.lanes} />}
    </div>
  )
}

function Clients(props: {
  readonly all: readonly Arrival[]
  readonly client: string
  readonly setClient: (client: string) => void
}) {
  const { all, client, setClient } = props
  const busiest = useMemo(() => {
    const counts = new Map<string, number>()
    for (const { key } of all) counts.set(key, (counts.get(key) ?? 0) + 1)
    return [...counts].sort(([, one], [, other]) => other - one).slice(0, 50)
  }, [all])
  return (
    <label>
      Client{' '}
      <select value={client} onChange={({ currentTarget }) => setClient(currentTarget.value)}>
        <option value="">all</option>
        {busiest.map(([key, count]) => (
          <option key={key} value={key}>{`${key} (${count} requests)`}</option>
        ))}
      </select>
    </label>
  )
}

interface PadProps {
  readonly traffic: readonly Arrival[]
  readonly span: Span
  readonly setTimes: (times: string) => void
}

/** Draws traffic with a finger or a mouse. The text above it is the way for the keyboard. */
function Pad({ traffic, span, setTimes }: PadProps) {
  const slotMs = (span.toMs - span.fromMs) / slots
  const draw = (event: PointerEvent & { readonly currentTarget: Element }) => {
    if (event.buttons === 0) return
    const { left, top, width, height } = event.currentTarget.getBoundingClientRect()
    const slot = Math.min(
      slots - 1,
      Math.max(0, Math.floor(((event.clientX - left) / width) * slots)),
    )
    const share = 1 - (event.clientY - top) / height
    const count = Math.max(0, Math.min(maxDrawn, Math.round(share * maxDrawn)))
    const others = traffic.filter(({ atMs }) => Math.floor(atMs / slotMs) !== slot)
    const atMs = Math.round((slot + 0.5) * slotMs)
    const drawn = Array.from({ length: count }, () => ({ atMs, key: 'client' }))
    setTimes(timesText([...others, ...drawn]))
  }
  return (
    <div class="pad" onPointerDown={draw} onPointerMove={draw}>
      <LaneChart
        {...{ traffic, span, run: undefined, cursorMs: -1_000, hasEdges: false }}
        label={`Traffic: ${traffic.length} requests. Draw here, or write times above.`}
      />
      <span aria-hidden="true">Draw here</span>
    </div>
  )
}

interface LaneProps {
  readonly lane: Lane
  readonly traffic: readonly Arrival[]
  readonly span: Span
  readonly cursor: number
  readonly run: Run | string | undefined
  readonly isHero: boolean
  readonly canRemove: boolean
  readonly change: (lane: Lane | undefined) => void
}

function LaneView({ lane, traffic, span, cursor, run, isHero, canRemove, change }: LaneProps) {
  const { algorithm, limit, window } = lane
  const valid = typeof run === 'object' ? run : undefined
  const cursorMs = traffic[cursor]?.atMs ?? 0
  const decision = valid?.decisions[cursor]
  const answer = decision && answerOf(decision, cursorMs)
  const isOver = valid !== undefined && valid.most > limit
  const title = `${algorithm}: ${limit} in ${window}`
  const refused = valid ? traffic.length - valid.allowed : 0
  return (
    <section class="panel" aria-label={title}>
      {isHero ? (
        <strong>{algorithm === 'sliding-log' ? `Sluice: ${title}` : title}</strong>
      ) : (
        <div class="row">
          <select
            {...{ 'aria-label': 'Algorithm', value: algorithm }}
            onChange={({ currentTarget: { value } }) => {
              const known = algorithms.find((name) => name === value)
              if (known) change({ ...lane, algorithm: known })
            }}
          >
            {algorithms.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          <input
            {...{ type: 'number', min: 0, 'aria-label': 'Limit', value: limit }}
            onInput={({ currentTarget }) => change({ ...lane, limit: currentTarget.valueAsNumber })}
          />
          <label>
            in{' '}
            <input
              {...{ class: 'short', 'aria-label': 'Window', value: window }}
              onInput={({ currentTarget }) => change({ ...lane, window: currentTarget.value })}
            />
          </label>
          {canRemove && (
            <button type="button" aria-label={`Remove ${title}`} onClick={() => change(undefined)}>
              ×
            </button>
          )}
        </div>
      )}
      {typeof run === 'string' && (
        <p class="fault" role="alert">
          {run}
        </p>
      )}
      <LaneChart
        {...{ traffic, span, cursorMs, run: valid, hasEdges: algorithm === 'fixed-window' }}
        label={`${title}: ${valid?.allowed ?? 0} allowed, ${refused} refused`}
      />
      <p class={isOver ? 'verdict over' : 'verdict'} role="status">
        {valid &&
          `${valid.allowed} allowed, ${refused} refused. At most ${valid.most} in any ${window}${isOver ? `: more than the limit of ${limit}` : ''}.`}
      </p>
      {answer && (
        <>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus. */}
          <pre tabIndex={0}>{answer.text}</pre>
          <p class="advice">{answer.advice}</p>
        </>
      )}
    </section>
  )
}

function Share({ scene, isLog }: { scene: Scene; isLog: boolean }) {
  const share = () => {
    const { times } = isLog ? attack : scene
    history.replaceState(history.state, '', `#${linkOf({ ...scene, times })}`)
    return location.href
  }
  return <Copy label={isLog ? 'Copy link (without the log)' : 'Copy link'} text={share} />
}

function Code({ lanes }: { lanes: readonly Lane[] }) {
  const [framework, setFramework] = useState(frameworks[0] ?? '')
  const [index, setIndex] = useState(0)
  const lane = lanes[index] ?? lanes[0]
  const code = lane ? snippet(framework, lane) : ''
  return (
    <section class="panel" aria-label="Code">
      <div class="row">
        <label>
          Code of{' '}
          <select
            value={index}
            onChange={({ currentTarget }) => setIndex(Number(currentTarget.value))}
          >
            {lanes.map(({ algorithm, limit, window }, place) => (
              <option key={place} value={place}>{`${algorithm}, ${limit} in ${window}`}</option>
            ))}
          </select>
        </label>
        <label>
          for{' '}
          <select
            value={framework}
            onChange={({ currentTarget }) => setFramework(currentTarget.value)}
          >
            {frameworks.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <Copy label="Copy code" text={() => code} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus. */}
      <pre tabIndex={0}>{code}</pre>
    </section>
  )
}

function Copy({ label, text }: { label: string; text: () => string }) {
  const [said, setSaid] = useState('')
  const copy = () =>
    navigator.clipboard.writeText(text()).then(
      () => setSaid('copied'),
      () => setSaid('the browser does not allow it'),
    )
  return (
    <>
      <button type="button" onClick={copy}>
        {label}
      </button>
      <span role="status">{said}</span>
    </>
  )
}

function useTraffic(text: string) {
  const [read, setRead] = useState<{ traffic: readonly Arrival[]; fault?: string }>({
    traffic: none,
  })
  useEffect(() => {
    let isCurrent = true
    const show = (found: typeof read) => isCurrent && setRead(found)
    readTraffic(text).then(
      (traffic) => show({ traffic }),
      (error) => show({ traffic: none, fault: error instanceof Error ? error.message : '' }),
    )
    return () => {
      isCurrent = false
    }
  }, [text])
  return read
}

function useRuns(lanes: readonly Lane[], traffic: readonly Arrival[]) {
  const [runs, setRuns] = useState<readonly (Run | string)[]>([])
  useEffect(() => {
    let isCurrent = true
    Promise.all(lanes.map((lane) => simulate(lane, traffic))).then((done) => {
      if (isCurrent) setRuns(done)
    })
    return () => {
      isCurrent = false
    }
  }, [lanes, traffic])
  return runs
}

function usePlay(traffic: readonly Arrival[], span: Span, setCursor: (index: number) => void) {
  const [isPlaying, setPlaying] = useState(false)
  const frame = useRef(0)
  useEffect(() => {
    if (!isPlaying) return undefined
    const startMs = performance.now()
    let index = 0
    const step = (nowMs: number) => {
      const share = Math.max(0, nowMs - startMs) / playMs
      const atMs = span.fromMs + share * (span.toMs - span.fromMs)
      while ((traffic[index + 1]?.atMs ?? Number.POSITIVE_INFINITY) <= atMs) index += 1
      setCursor(index)
      if (share < 1) frame.current = requestAnimationFrame(step)
      else setPlaying(false)
    }
    frame.current = requestAnimationFrame(step)
    return () => cancelAnimationFrame(frame.current)
  }, [isPlaying, traffic])
  return [isPlaying, setPlaying] as const
}

/** Drawn traffic has room to its right, and its span does not change while somebody draws. */
function spanOf(traffic: readonly Arrival[], isLog: boolean): Span {
  const lastMs = traffic.at(-1)?.atMs ?? 0
  if (isLog) return { fromMs: traffic[0]?.atMs ?? 0, toMs: lastMs + 1 }
  return { fromMs: 0, toMs: Math.max(12_000, Math.floor(lastMs / 10_000) * 10_000 + 10_000) }
}

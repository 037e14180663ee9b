import { onOneLine } from '@sluice/core'
import { type Command, Option } from 'commander'
import type { LogRequest } from '../formats/log-request.ts'
import { countText } from '../report/formats.ts'
import type { LogReport, UnreadableLine } from '../report/simulation-report.ts'
import { CliError, exitCodes } from '../terminal/exit-codes.ts'
import type { Style } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { section } from '../terminal/text.ts'
import { type LogOptions, LogReader } from './log-reader.ts'

export const logNotes = `Formats: auto (detected from the first lines), common, combined, vhost-combined, pino-http, caddy, traefik,
traefik-common, envoy, alb, cloudfront, json with --fields, or the log_format of nginx in quotes, with its
$variables. Files may be
compressed with gzip; - is standard input. Several files are merged by time.`

export function addLogOptions(command: Command): Command {
  return command
    .option('-f, --format <format>', 'format of the log', 'auto')
    .option('--fields <map>', 'fields of JSON lines: time=ts,ip=client.ip,method=m,path=url,…')
    .addOption(
      new Option(
        '--time <moment>',
        'meaning of the time in a line: start or end of the request',
      ).choices(['start', 'end']),
    )
    .option('--trust-proxy <proxies>', 'number or networks of proxies, as in Express')
    .option('--order-window <time>', 'time by which lines may be out of order', '1m')
    .option('--strict', 'fail if a line cannot be read')
}

/**
 * Reads logs to the end, and reports unreadable lines. Without files, the log is standard input.
 * @throws CliError if there are no requests, or with `--strict` for an unreadable line
 */
export async function readLogs(
  terminal: Terminal,
  { files, options }: { readonly files: readonly string[]; readonly options: LogOptions },
  read: (pieces: AsyncIterable<readonly LogRequest[]>) => Promise<void>,
): Promise<LogReport> {
  if (files.length === 0 && terminal.stdin.isTTY) {
    throw new CliError('no log given; name a file, or - for standard input')
  }
  const reader = new LogReader(terminal, files.length === 0 ? ['-'] : files, options)
  await read(reader.read())
  const { report } = reader
  const { lines, examples } = report.unreadable
  const [example] = examples.map(textOf)
  if (options.strict && lines > 0) {
    throw new CliError(
      `${lines} of ${report.lines} lines cannot be read, as ${example}`,
      exitCodes.found,
    )
  }
  if (report.requests === 0) {
    throw new CliError(
      example
        ? `no line of the log can be read with --format ${report.format}: ${example}`
        : 'the log has no requests',
    )
  }
  return report
}

/** The section of a result that counts unreadable lines, and shows the first few. */
export function unreadableSection({ unreadable }: LogReport, style: Style): readonly string[] {
  const { lines, examples } = unreadable
  const title = style('bold', `Lines that cannot be read: ${countText(lines)}`)
  return section(title, examples.map(textOf))
}

function textOf({ file, line, reason, text }: UnreadableLine): string {
  return `${file}:${line}: ${reason}: ${onOneLine(text)}`
}

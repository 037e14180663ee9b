/** Outlines on a 16-pixel grid, drawn for this page. */
const paths = {
  overview: 'M2 13h12M3.5 10.5 6.5 6l3 2.5 3-5',
  policies: 'M3 4h6M12 4h1M3 8h1M7 8h6M3 12h6M12 12h1M10.5 2.5v3M5.5 6.5v3M10.5 10.5v3',
  keys: 'M9 7a3 3 0 1 0-6 0 3 3 0 0 0 6 0ZM9 7h5v2.5M12 7v2',
  top: 'M3 13V8M8 13V3M13 13V6',
  queues: 'M2.5 4h11M2.5 8h11M2.5 12h6',
  audit: 'M4 2.5h6l2.5 2.5v8.5h-8.5zM6 8h4M6 10.5h4',
  alert: 'M8 2.5 14 13H2ZM8 6.5v3M8 11.2v.1',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  close: 'M4 4l8 8M12 4l-8 8',
  sluice:
    'M2 3.5h12M4.5 3.5v6M11.5 3.5v6M8 3.5v4M2 11.5c1.5-1.3 2.5-1.3 4 0s2.5 1.3 4 0 2.5-1.3 4 0',
} as const

type IconName = keyof typeof paths

/** Draws an icon, hidden from screen readers because there is text next to it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      <path d={paths[name]} />
    </svg>
  )
}

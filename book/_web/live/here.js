// What the build found: the folder with Python and its files. Without them, no button.
export default null;
